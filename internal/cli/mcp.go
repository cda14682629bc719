package cli

import (
	"context"
	"log/slog"
	"os"

	"github.com/spf13/cobra"

	"github.com/duet-rpc/duet-rpc/client"
	"github.com/duet-rpc/duet-rpc/internal/host"
	"github.com/duet-rpc/duet-rpc/internal/logging"
	"github.com/duet-rpc/duet-rpc/internal/mcp"
	"github.com/duet-rpc/duet-rpc/server"
)

// This file is the command that makes Duet a server of the Model Context Protocol, for
// agents that speak no more than that.

const mcpHelp = `Be a server of the Model Context Protocol on standard input and output, for agents
that were not started by Duet: they ask through the project's inbox, and see what
other agents do. docs/mcp.md says how to add it to each of them.

  request_permission  asks whether a tool may run, by your rules first and then you
  ask_user            asks you anything
  list_sessions, get_session, get_conversation, list_questions, page_messages

Claude Code asks you in your editor or shell, instead of in its terminal, with
  claude mcp add duet -- duet-rpc mcp
  claude -p --permission-prompt-tool mcp__duet__request_permission "..."

The hub is a daemon, which is started if none runs. A question stays open when the
agent goes: one of the same name that asks the same again gets the answer.

Exit status: 0 when the agent has gone; 1 if it could not start.`

// newMCP makes the command.
func newMCP(s *settings) *cobra.Command {
	return &cobra.Command{
		Use:     "mcp",
		Short:   "Be an MCP server by which agents ask through the inbox",
		Long:    mcpHelp,
		Example: "  duet-rpc mcp\n  claude mcp add duet -- duet-rpc mcp",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			own := s.Settings
			if !s.LevelGiven(cmd) { // agents show their users what a server writes to standard error
				own.LogLevel = logging.Level(slog.LevelWarn)
			}
			directory, err := os.Getwd()
			if err != nil {
				directory = "" // the project's root will do
			}
			return host.ServeThrough(cmd.Context(), &s.Settings, own.OpenLog(), func(ctx context.Context, agent server.Transport, hub *client.Client, log *logging.Log) error {
				return mcp.ServeTools(ctx, agent, hub, mcp.ToolsOptions{Version: s.Version, Logger: log.Logger, CWD: directory})
			})
		},
	}
}
