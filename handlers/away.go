package handlers

import (
	"context"

	"github.com/duet-rpc/duet-rpc/internal/protocol"
	"github.com/duet-rpc/duet-rpc/server"
)

// Away is what an editor's process with --host does itself for sessions on the host.
type Away struct {
	// Start starts a session there with the files of this machine: params.Send is set.
	Start func(ctx context.Context, params protocol.StartParams) (protocol.Started, error)
	// Land and Discard land and discard the worktree of a session: here, if it began with the files of this machine.
	Land    func(ctx context.Context, params protocol.LandParams) (protocol.LandResult, error)
	Discard func(ctx context.Context, params protocol.DiscardParams) (protocol.DiscardResult, error)
}

// RegisterAway registers the methods of away, with the parameters, results and errors that they have in a daemon.
func RegisterAway(reg *server.Registry, away Away) {
	server.Handle(reg, "session.start", func(ctx context.Context, p protocol.StartParams) (protocol.Started, error) {
		sends := p.Send
		p.Send = false
		if err := checkParams(p); err != nil {
			return protocol.Started{}, nativeFamily.Error(err)
		}
		p.Send = sends
		started, err := away.Start(ctx, p)
		return started, nativeFamily.Error(err)
	})
	server.Handle(reg, "session.land", func(ctx context.Context, p protocol.LandParams) (protocol.LandResult, error) {
		if err := checkParams(p); err != nil {
			return protocol.LandResult{}, nativeFamily.Error(err)
		}
		r, err := away.Land(ctx, p)
		fitFiles(ctx, &r)
		return r, nativeFamily.Error(withPaths(err))
	})
	server.Handle(reg, "session.discard", func(ctx context.Context, p protocol.DiscardParams) (protocol.DiscardResult, error) {
		if err := checkParams(p); err != nil {
			return protocol.DiscardResult{}, nativeFamily.Error(err)
		}
		r, err := away.Discard(ctx, p)
		return r, nativeFamily.Error(err)
	})
}
