package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/duet-rpc/duet-rpc/client"
	"github.com/duet-rpc/duet-rpc/internal/cli/agents"
	"github.com/duet-rpc/duet-rpc/internal/cli/invocation"
	"github.com/duet-rpc/duet-rpc/internal/wire"
)

// agentsOptions are what the commands about agents need.
func agentsOptions(s *invocation.Settings) agents.Options {
	return agents.Options{
		Config: s.Config, Version: s.Version, JSON: func() bool { return s.JSON }, NoArguments: invocation.NoArguments,
		Working: func(cmd *cobra.Command, agent string) (tasks []string) {
			_ = invocation.Connected(cmd, s, func(ctx context.Context, c *client.Client) error { // without a hub none works here
				list, _, err := wire.Call[[]wire.Task](ctx, c, "task.list", map[string]any{"agent": agent, "state": "running"})
				for _, t := range list {
					tasks = append(tasks, t.ID)
				}
				return err
			})
			return tasks
		},
		AskYes: func(cmd *cobra.Command, question, no, again string) error {
			return invocation.AskYes(cmd, s, question, no, again)
		},
	}
}

func newAgentsCommand(s *invocation.Settings) *cobra.Command { return agents.New(agentsOptions(s)) }
