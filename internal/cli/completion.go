package cli

import (
	"context"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/duet-rpc/duet-rpc/client"
	"github.com/duet-rpc/duet-rpc/internal/cli/attach"
	"github.com/duet-rpc/duet-rpc/internal/cli/output"
	"github.com/duet-rpc/duet-rpc/internal/cli/wire"
	"github.com/duet-rpc/duet-rpc/internal/host"
)

// completeWithin bounds what a shell waits for at a key.
const completeWithin = time.Second

// A completer lists candidates, as "word\tdescription".
type completer func(ctx context.Context, c *client.Client) []string

// completeFirst completes the first argument by what the hub knows, and
// nothing where no hub runs.
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
		_ = s.complete(cmd) // a shell wants no errors
		p, err := s.Project()
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		ctx, cancel := context.WithTimeout(cmd.Context(), completeWithin)
		defer cancel()
		c, err := host.Dial(ctx, &s.Settings, p)
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		defer c.Close()
		var fit []string
		for _, candidate := range list(ctx, c) {
			if strings.HasPrefix(candidate, word) {
				fit = append(fit, candidate)
			}
		}
		return fit, cobra.ShellCompDirectiveNoFileComp
	}
}

// taskIDs lists the last tasks.
func taskIDs(ctx context.Context, c *client.Client) []string {
	tasks, _, _ := wire.Call[[]wire.Task](ctx, c, "task.list", map[string]int{"limit": 50})
	var out []string
	for _, t := range tasks {
		out = append(out, t.ID+"\t"+output.Short(t.State+" · "+t.Prompt))
	}
	return out
}

// approvalIDs lists the open questions.
func approvalIDs(ctx context.Context, c *client.Client) []string {
	open, _, _ := wire.OpenApprovals(ctx, c, "")
	var out []string
	for _, a := range open {
		out = append(out, a.ID+"\t"+output.Short(a.TaskID+" · "+a.Asks()))
	}
	return out
}

// terminalIDs lists the terminals.
func terminalIDs(ctx context.Context, c *client.Client) []string {
	terminals, _, _ := wire.Terminals(ctx, c)
	var out []string
	for _, t := range terminals {
		out = append(out, t.ID+"\t"+attach.Describe(t))
	}
	return out
}

// methodNames lists the hub's methods.
func methodNames(ctx context.Context, c *client.Client) []string {
	methods, _, _ := wire.Call[[]struct{ Name, Description string }](ctx, c, "listMethods", nil)
	var out []string
	for _, m := range methods {
		out = append(out, m.Name+"\t"+output.Short(m.Description))
	}
	return out
}

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
