package cli

import (
	"github.com/spf13/cobra"

	"github.com/duet-rpc/duet-rpc/internal/cli/agents"
)

func newAgentsCommand(s *settings) *cobra.Command {
	return agents.New(agents.Options{
		Config: s.Config, JSON: func() bool { return s.json }, NoArguments: noArguments,
		AskYes: func(cmd *cobra.Command, question, no, again string) error { return askYes(cmd, s, question, no, again) },
	})
}
