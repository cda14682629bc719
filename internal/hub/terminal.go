package hub

import (
	"context"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/terminal"
)

// Terminals are the terminals that run.
func (h *Hub) Terminals() *terminal.Registry { return h.terminals }

func (h *Hub) newTerminals(ctx context.Context) *terminal.Registry {
	return terminal.New(ctx, terminal.Options{
		Acquire: func(ctx context.Context) (terminal.Executor, error) {
			return h.executors.Acquire(ctx, catalog.LeaseRequest{Driver: "command"})
		},
		Directory: h.directory, Runs: h, Events: publisher{h}, Log: h.store, Secrets: h.keys, Logger: h.log,
	})
}

// A publisher tells subscribers of events that the log does not keep.
type publisher struct{ hub *Hub }

func (p publisher) Publish(e domain.Event) {
	p.hub.events.Publish(e)
}

// TerminalStarted is as of [terminal.Registry], and so are the others.
func (h *Hub) TerminalStarted(ctx context.Context, p catalog.TerminalStartedParams) error {
	return h.terminals.TerminalStarted(ctx, p)
}

func (h *Hub) TerminalOutput(ctx context.Context, p catalog.TerminalOutputParams) error {
	return h.terminals.TerminalOutput(ctx, p)
}

func (h *Hub) TerminalExit(ctx context.Context, p catalog.TerminalExitParams) error {
	return h.terminals.TerminalExit(ctx, p)
}
