package cli

import (
	"github.com/spf13/cobra"

	"github.com/duet-rpc/duet-rpc/internal/cli/agents"
)

// agentsOptions are what the commands about agents need.
func (s *settings) agentsOptions() agents.Options {
	return agents.Options{
		Config: s.Config, JSON: func() bool { return s.json }, NoArguments: noArguments,
		AskYes: func(cmd *cobra.Command, question, no, again string) error { return askYes(cmd, s, question, no, again) },
	}
}

func newAgentsCommand(s *settings) *cobra.Command { return agents.New(s.agentsOptions()) }
