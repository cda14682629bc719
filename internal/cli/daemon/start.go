package daemon

import (
	"context"
	"fmt"
	"slices"

	"github.com/duet-rpc/duet-rpc/internal/hubprocess"
	"github.com/duet-rpc/duet-rpc/internal/project"
	"github.com/duet-rpc/duet-rpc/internal/wire"
)

// Start starts a daemon in the background, unless there is a hub, and returns when
// it answers. started is false if a daemon ran already.
func Start(ctx context.Context, s *hubprocess.Settings, p project.Project) (status wire.HubStatus, started bool, err error) {
	status, err = Status(ctx, s, p)
	if err != nil {
		if err := hubprocess.EnsureDaemon(ctx, s, p); err != nil {
			return status, false, err
		}
		started = true
		if status, err = Status(ctx, s, p); err != nil {
			return status, true, err
		}
	}
	return status, started, checkWanted(status, s)
}

// checkWanted gives an error if a hub is not what daemon start is to start.
func checkWanted(hub wire.HubStatus, s *hubprocess.Settings) error {
	for _, path := range s.Listen {
		if !slices.ContainsFunc(hub.Subsystems.IPC.Sockets, func(socket string) bool { return project.SameFile(socket, path) }) {
			return fmt.Errorf("the hub here (process %d) does not listen on %s, and cannot be told to while it runs: stop it and start it again with --listen; its log may say more: duet-rpc daemon logs", hub.PID, path)
		}
	}
	return nil
}
