package cli

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"github.com/duet-rpc/duet-rpc/client"
	"github.com/duet-rpc/duet-rpc/internal/cli/candidate"
	"github.com/duet-rpc/duet-rpc/internal/cli/flagvalue"
	"github.com/duet-rpc/duet-rpc/internal/cli/invocation"
	"github.com/duet-rpc/duet-rpc/internal/wire"
)

// agentSettings are what an agent can be set to by flags.
type agentSettings struct {
	mode, model string
	options     []string // ID=VALUE
}

// addFlags adds the flags. known is whose modes, models and options they complete.
func (a *agentSettings) addFlags(cmd *cobra.Command, s *invocation.Settings, known func(ctx context.Context, c *client.Client, cmd *cobra.Command, args []string) (wire.AgentDescription, error)) {
	f := cmd.Flags()
	f.StringVar(&a.mode, "mode", "", "what the agent may do without asking, as `MODE`: "+strings.Join(wire.DuetModes, ", ")+", or a mode of its own")
	f.StringVarP(&a.model, "model", "m", "", "have the agent use `MODEL`")
	f.StringArrayVar(&a.options, "option", nil, "set an option of the agent, `ID=VALUE`; may be given several times")
	for name, list := range map[string]func(k wire.AgentDescription) []string{"mode": candidate.Modes, "model": candidate.Models, "option": candidate.Options} {
		_ = cmd.RegisterFlagCompletionFunc(name, func(cmd *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
			words, directive := completeAll(s, func(ctx context.Context, c *client.Client) []string {
				k, err := known(ctx, c, cmd, args)
				if err != nil {
					return nil
				}
				return list(k)
			})(cmd, args, word)
			if words == nil && name == "mode" { // no hub runs
				words = wire.DuetModes
			}
			return words, directive
		})
	}
}

// params adds what the flags say to the parameters of session.set.
func (a *agentSettings) params(params map[string]any) error {
	return a.addTo(params, map[string]string{"mode": a.mode, "model": a.model})
}

// addTo adds members that are not empty, and what --option says, to the parameters of a
// method.
func (a *agentSettings) addTo(params map[string]any, members map[string]string) error {
	options, err := flagvalue.AgentOptions(a.options)
	wire.AddSettings(params, members, options)
	return err
}

// isEmpty reports whether no flag was given.
func (a *agentSettings) isEmpty() bool { return a.mode == "" && a.model == "" && len(a.options) == 0 }

// knownByFlag is what can be asked of the agent that the flag --agent names.
func knownByFlag(ctx context.Context, c *client.Client, cmd *cobra.Command, _ []string) (wire.AgentDescription, error) {
	agent, _ := cmd.Flags().GetString("agent") // "" where there is no such flag
	return wire.DescribeAgent(ctx, c, agent, "")
}

// knownByID is what can be asked of the agent of the session that is the first
// argument.
func knownByID(ctx context.Context, c *client.Client, cmd *cobra.Command, args []string) (wire.AgentDescription, error) {
	if len(args) == 0 {
		return knownByFlag(ctx, c, cmd, nil)
	}
	return wire.DescribeAgent(ctx, c, "", args[0])
}
