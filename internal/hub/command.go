package hub

import (
	"context"

	"github.com/duet-rpc/duet-rpc/internal/build"
	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/store"
	"github.com/duet-rpc/duet-rpc/internal/usercommand"
)

// Commands runs commands of the configuration.
func (h *Hub) Commands() *usercommand.Runner { return h.commands }

func (h *Hub) newCommands(ctx context.Context) *usercommand.Runner {
	return usercommand.New(ctx, usercommand.Options{
		Acquire: func(ctx context.Context) (usercommand.Executor, error) {
			return h.executors.Acquire(ctx, catalog.LeaseRequest{Driver: "command"})
		},
		Write: h.write, Logger: h.log,
	})
}

// Builds builds the project.
func (h *Hub) Builds() *build.Builds { return h.builds }

func (h *Hub) newBuilds() *build.Builds {
	configured := h.opts.Builds
	if configured == nil {
		configured = func() (build.Configured, error) { return build.Configured{}, nil }
	}
	return build.New(build.Options{Root: h.opts.Root, Getenv: h.opts.Getenv, Configured: configured, Run: h.commands.Run, Announce: h.announceBuild})
}

// announceBuild adds an event of a build to the log, before whoever asked for the build is
// told the same.
func (h *Hub) announceBuild(e domain.Event) {
	err := h.write(h.ctx, func(t store.Tx) error {
		_, err := t.Append(e)
		return err
	})
	if err != nil && h.ctx.Err() == nil {
		h.log.Warn("an event of a build could not be kept", "err", err)
	}
}
