package cli

import (
	"context"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/duet-rpc/duet-rpc/client"
)

// completeWithin bounds what a shell waits for at a key: a second, unless
// DUET_COMPLETION_TIMEOUT says otherwise.
func completeWithin() time.Duration {
	if d, err := time.ParseDuration(os.Getenv("DUET_COMPLETION_TIMEOUT")); err == nil && d > 0 {
		return d
	}
	return time.Second
}

// A completer lists candidates, as "word\tdescription".
type completer func(ctx context.Context, c *client.Client) []string

// completeFirst completes the first argument by what the hub knows, or what was kept
// where none runs.
func completeFirst(s *settings, list completer) cobra.CompletionFunc {
	all := completeAll(s, list)
	return func(cmd *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return all(cmd, args, word)
	}
}

// completeAll completes every argument, or the value of a flag.
func completeAll(s *settings, list completer) cobra.CompletionFunc {
	return func(cmd *cobra.Command, _ []string, word string) ([]string, cobra.ShellCompDirective) {
		_ = s.Complete(cmd) // a shell wants no errors
		ctx, cancel := context.WithTimeout(cmd.Context(), completeWithin())
		defer cancel()
		var fit []string
		_ = withClient(ctx, reachOptions{Settings: &s.Settings}, func(ctx context.Context, c *client.Client) error {
			for _, candidate := range list(ctx, c) {
				if strings.HasPrefix(candidate, word) {
					fit = append(fit, candidate)
				}
			}
			return nil
		})
		return fit, cobra.ShellCompDirectiveNoFileComp
	}
}

// agentFlag adds --agent, which completes by the configuration.
func agentFlag(cmd *cobra.Command, s *settings, name *string, usage string) {
	cmd.Flags().StringVar(name, "agent", "", usage)
	_ = cmd.RegisterFlagCompletionFunc("agent", func(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
		_ = s.Complete(cmd)
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
