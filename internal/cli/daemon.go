package cli

import (
	"github.com/spf13/cobra"

	"github.com/duet-rpc/duet-rpc/internal/cli/daemon"
)

func newDaemonCommand(s *settings) *cobra.Command {
	return daemon.New(daemon.Options{
		Settings: &s.Settings, JSON: func() bool { return s.json }, NoArguments: noArguments,
		Group:    group,
		Progress: func(cmd *cobra.Command, what string) { progress(cmd, s, "%s", what) },
	})
}
