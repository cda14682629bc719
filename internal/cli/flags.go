package cli

import (
	"strings"

	"github.com/spf13/cobra"
)

// agentFlag adds --agent, which completes by the configuration.
func agentFlag(cmd *cobra.Command, s *settings, name *string, usage string) {
	cmd.Flags().StringVar(name, "agent", "", usage)
	_ = cmd.RegisterFlagCompletionFunc("agent", func(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
		_ = s.complete(cmd)
		c, err := s.Config()
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		var names []string
		for _, a := range c.List() {
			names = append(names, a.Name)
		}
		return names, cobra.ShellCompDirectiveNoFileComp
	})
}

// oneOf adds a flag that takes one of some words; the hub refuses others.
func oneOf(cmd *cobra.Command, value *string, name, usage string, words ...string) {
	cmd.Flags().StringVar(value, name, "", usage+": "+strings.Join(words, ", "))
	_ = cmd.RegisterFlagCompletionFunc(name, cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp))
}

// directories lets flags complete names of directories.
func directories(cmd *cobra.Command, flags ...string) {
	for _, name := range flags {
		_ = cmd.RegisterFlagCompletionFunc(name, cobra.FixedCompletions(nil, cobra.ShellCompDirectiveFilterDirs))
	}
}
