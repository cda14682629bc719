package cli

import (
	"github.com/spf13/cobra"

	"github.com/duet-rpc/duet-rpc/internal/cli/daemon"
	"github.com/duet-rpc/duet-rpc/internal/cli/invocation"
)

func newDaemonCommand(s *invocation.Settings) *cobra.Command {
	return daemon.New(daemon.Options{
		Settings: &s.Settings, JSON: func() bool { return s.JSON }, NoArguments: invocation.NoArguments,
		Group:    invocation.Group,
		Progress: func(cmd *cobra.Command, what string) { invocation.Progress(cmd, s, "%s", what) },
	})
}
