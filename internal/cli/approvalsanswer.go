package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"strings"

	"github.com/spf13/cobra"

	"github.com/duet-rpc/duet-rpc/client"
	"github.com/duet-rpc/duet-rpc/internal/cli/candidate"
	"github.com/duet-rpc/duet-rpc/internal/cli/invocation"
	"github.com/duet-rpc/duet-rpc/internal/cli/turn"
	"github.com/duet-rpc/duet-rpc/internal/wire"
)

// answerApproval answers the question that an id names, as decide says.
func answerApproval(cmd *cobra.Command, s *invocation.Settings, id string, decide func(wire.Approval) (wire.Decision, error)) error {
	err := invocation.Connected(cmd, s, func(ctx context.Context, c *client.Client) error {
		a, _, err := turn.FindApproval(ctx, c, id)
		if err != nil {
			return err
		}
		d, err := decide(a)
		if err != nil {
			return err
		}
		d.ID = a.ID
		return sendDecision(ctx, cmd, s, c, d)
	})
	return turn.InWords(err)
}

// answerFlags are those of answers to questions about tools.
func answerFlags(cmd *cobra.Command, d *wire.Decision, option *string) {
	scopeFlag(cmd, d)
	cmd.Flags().StringVar(&d.Pattern, "pattern", "", "with --scope: what the rule is for, instead of what approvals show says")
	cmd.Flags().StringVar(option, "option", "", "the agent's own answer, by its number, id or name")
	cmd.Flags().BoolVar(&d.Tell, "tell", false, "the agent is to be told the words, with its next prompt if it takes none with the answer")
}

func scopeFlag(cmd *cobra.Command, d *wire.Decision) {
	invocation.OneOf(cmd, &d.Scope, "scope", "for how long the answer holds, without being asked again", "once", "session", "project")
}

func newApproveCommand(s *invocation.Settings) *cobra.Command {
	d := wire.Decision{Decision: wire.Approve}
	var input, option string
	cmd := &cobra.Command{
		Use:   "approve ID",
		Short: "Allow what an agent asks",
		Long: "Allow what an agent asks: once, for the rest of the session or in the whole\n" +
			"project. With --edit-input the tool runs with another input.\n\n" +
			"approvals show says which answers the agent offers, and what a rule would be for.\n" + invocation.HubStatusHelp,
		Example: "  duet-rpc approvals approve 7787605b\n  duet-rpc approvals approve 7787605b --scope session\n" +
			"  duet-rpc approvals approve 7787605b --scope project --pattern 'git log *'\n  duet-rpc approvals approve 7787605b --option 2",
		Args:              invocation.Exactly("ID"),
		ValidArgsFunction: completeFirst(s, candidate.Approvals),
		RunE: func(cmd *cobra.Command, args []string) error {
			if cmd.Flags().Changed("edit-input") {
				if !json.Valid([]byte(input)) || !strings.HasPrefix(strings.TrimSpace(input), "{") {
					return errors.New("--edit-input must be a JSON object")
				}
				d.Input = json.RawMessage(input)
			}
			return answerApproval(cmd, s, args[0], func(a wire.Approval) (wire.Decision, error) { return turn.WithOption(d, a, option) })
		},
	}
	cmd.Flags().StringVar(&input, "edit-input", "", "the input that the tool gets instead, a JSON object")
	cmd.Flags().StringVar(&d.Comment, "comment", "", "why, for the record")
	answerFlags(cmd, &d, &option)
	return cmd
}

func newDenyCommand(s *invocation.Settings) *cobra.Command {
	d := wire.Decision{Decision: wire.Deny}
	var option string
	cmd := &cobra.Command{
		Use:               "deny ID [REASON...]",
		Short:             "Deny what an agent asks",
		Long:              "Deny what an agent asks. Few agents are told the reason with that; with --tell it is\ntheir next prompt then.\n" + invocation.HubStatusHelp,
		Example:           "  duet-rpc approvals deny 7787605b\n  duet-rpc approvals deny 7787605b --tell use a branch",
		Args:              invocation.AtLeast("ID"),
		ValidArgsFunction: completeFirst(s, candidate.Approvals),
		RunE: func(cmd *cobra.Command, args []string) error {
			if d.Comment = strings.Join(args[1:], " "); d.Comment == "" && d.Tell {
				return errors.New("--tell: there is nothing to tell; say it behind the id")
			}
			d.Comment = cmp.Or(d.Comment, "denied") // somebody has to say something
			return answerApproval(cmd, s, args[0], func(a wire.Approval) (wire.Decision, error) { return turn.WithOption(d, a, option) })
		},
	}
	answerFlags(cmd, &d, &option)
	return cmd
}
