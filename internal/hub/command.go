package hub

import (
	"context"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/usercommand"
)

// Commands runs commands of the configuration.
func (h *Hub) Commands() *usercommand.Runner { return h.commands }

func (h *Hub) newCommands(ctx context.Context) *usercommand.Runner {
	return usercommand.New(ctx, usercommand.Options{
		Acquire: func(ctx context.Context) (usercommand.Executor, error) {
			if h.opts.History || h.opts.StartsNothing {
				return nil, domain.Errorf(domain.KindUnavailable, "no hub runs here that could start a command")
			}
			return h.executors.Acquire(ctx, catalog.LeaseRequest{Driver: "command"})
		},
		Write: h.write, Logger: h.log,
	})
}
