package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/duet-rpc/duet-rpc/client"
	"github.com/duet-rpc/duet-rpc/internal/cli/invocation"
	"github.com/duet-rpc/duet-rpc/internal/cli/nativesession"
	"github.com/duet-rpc/duet-rpc/internal/cli/turn"
)

// nativeSessions are what the commands about agents' own sessions need.
func nativeSessions(s *invocation.Settings) nativesession.Options {
	return nativesession.Options{
		Hub: func(cmd *cobra.Command, do func(context.Context, *client.Client) error) error {
			return turn.InWords(invocation.Connected(cmd, s, do))
		},
		JSON:     func() bool { return s.JSON },
		Progress: func(cmd *cobra.Command, format string, args ...any) { invocation.Progress(cmd, s, format, args...) },
		AskYes: func(cmd *cobra.Command, question, no, again string) error {
			return invocation.AskYes(cmd, s, question, no, again)
		},
		Agent: func(cmd *cobra.Command, name *string, usage string) { agentFlag(cmd, s, name, usage) },
		Complete: func(list func(context.Context, *client.Client) []string) cobra.CompletionFunc {
			return completeFirst(s, list)
		},
		Root: func() (string, error) {
			p, err := s.Project()
			return p.Root, err
		},
		FullPath: invocation.FullPath, Help: invocation.HubStatusHelp, Starts: invocation.Begins(),
	}
}
