package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"strings"

	"github.com/spf13/cobra"

	"github.com/duet-rpc/duet-rpc/client"
	"github.com/duet-rpc/duet-rpc/internal/cli/inbox"
	"github.com/duet-rpc/duet-rpc/internal/cli/output"
	"github.com/duet-rpc/duet-rpc/internal/cli/wire"
)

// answerApproval answers the question that an id names, as decide says.
func answerApproval(cmd *cobra.Command, s *settings, id string, decide func(wire.Approval) (wire.Decision, error)) error {
	return withHub(cmd, s, func(ctx context.Context, c *client.Client) error {
		a, _, err := inbox.Find(ctx, c, id)
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
}

func sendDecision(ctx context.Context, cmd *cobra.Command, s *settings, c *client.Client, d wire.Decision) error {
	r, raw, err := wire.Call[wire.Decided](ctx, c, "sendDecision", d)
	if err != nil {
		return err
	}
	if s.json {
		if err := output.Raw(cmd.OutOrStdout(), raw); err != nil || r.Success {
			return err
		}
		return exitStatus(1)
	}
	if !r.Success {
		return errors.New(output.Line(cmp.Or(r.Error, "the question could not be answered")))
	}
	progress(cmd, s, "%s: %s", inbox.ShortID(d.ID), r.Status)
	return nil
}

func scopeFlag(cmd *cobra.Command, d *wire.Decision) {
	oneOf(cmd, &d.Scope, "scope", "for how long the answer holds, without being asked again", "once", "session", "project")
}

func newApproveCommand(s *settings) *cobra.Command {
	d := wire.Decision{Decision: "approve"}
	var input string
	cmd := &cobra.Command{
		Use:   "approve ID",
		Short: "Allow what an agent asks",
		Long: "Allow what an agent asks: once, for the rest of the session or in the whole\n" +
			"project. With --edit-input the tool runs with another input.\n" + hubStatusHelp,
		Example:           "  duet-rpc approvals approve 7787605b\n  duet-rpc approvals approve 7787605b --scope session",
		Args:              exactly("ID"),
		ValidArgsFunction: completeFirst(s, approvalIDs),
		RunE: func(cmd *cobra.Command, args []string) error {
			if cmd.Flags().Changed("edit-input") {
				if !json.Valid([]byte(input)) || !strings.HasPrefix(strings.TrimSpace(input), "{") {
					return errors.New("--edit-input must be a JSON object")
				}
				d.Input = json.RawMessage(input)
			}
			return answerApproval(cmd, s, args[0], func(wire.Approval) (wire.Decision, error) { return d, nil })
		},
	}
	cmd.Flags().StringVar(&input, "edit-input", "", "the input that the tool gets instead, a JSON object")
	cmd.Flags().StringVar(&d.Comment, "comment", "", "why, for the record")
	scopeFlag(cmd, &d)
	return cmd
}

func newDenyCommand(s *settings) *cobra.Command {
	d := wire.Decision{Decision: "deny"}
	cmd := &cobra.Command{
		Use:               "deny ID REASON...",
		Short:             "Deny what an agent asks, and tell it why",
		Long:              "Deny what an agent asks, and tell it why.\n" + hubStatusHelp,
		Example:           "  duet-rpc approvals deny 7787605b use a branch",
		Args:              atLeast("ID", "REASON"),
		ValidArgsFunction: completeFirst(s, approvalIDs),
		RunE: func(cmd *cobra.Command, args []string) error {
			d.Comment = strings.Join(args[1:], " ")
			return answerApproval(cmd, s, args[0], func(wire.Approval) (wire.Decision, error) { return d, nil })
		},
	}
	scopeFlag(cmd, &d)
	return cmd
}
