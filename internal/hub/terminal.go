package hub

import (
	"context"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/terminal"
)

// Terminals are the terminals that run.
func (h *Hub) Terminals() *terminal.Registry { return h.terminals }

func (h *Hub) newTerminals(ctx context.Context) *terminal.Registry {
	return terminal.New(ctx, terminal.Options{
		Acquire: func(ctx context.Context) (terminal.Executor, error) {
			return h.executors.Acquire(ctx, catalog.LeaseRequest{Driver: "command"})
		},
		Directory: h.directory, Runs: h.query, Events: publisher{h}, Log: h.store, Secrets: h.keys, Logger: h.log,
	})
}
