package cli

import (
	"github.com/spf13/cobra"

	"github.com/duet-rpc/duet-rpc/internal/cli/invocation"
	"github.com/duet-rpc/duet-rpc/internal/host"
)

func newServeCommand(s *invocation.Settings) *cobra.Command {
	return &cobra.Command{
		Use:   "serve",
		Short: "Serve an editor on standard input and output",
		Long: `Serve an editor on standard input and output, even if they are a terminal.

Exit status: 0 whichever way the session ended; 1 if it could not start.`,
		Args: invocation.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return host.Serve(cmd.Context(), &s.Settings) },
	}
}
