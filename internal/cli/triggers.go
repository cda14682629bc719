package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/duet-rpc/duet-rpc/client"
	"github.com/duet-rpc/duet-rpc/internal/cli/term"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/hubclient"
	"github.com/duet-rpc/duet-rpc/internal/protocol"
)

// duet-rpc triggers: list triggers and their executions, enable and disable them.

const triggersHelp = `Triggers ([[triggers]] in the configuration) act by themselves when files change, at a
time, when a session ends or a question opens. docs/automation.md describes them.
`

// newTriggers returns the triggers command.
func newTriggers(s *settings) *cobra.Command {
	list := newList(s)
	cmd := &cobra.Command{
		Use: "triggers", Short: "List, test and switch the triggers", Annotations: begins(),
		Long: triggersHelp + hubStatusHelp,
		Args: noArguments, RunE: list.RunE,
	}
	cmd.AddCommand(list, newTriggersShow(s), newSwitch(s, "enable", "on"), newSwitch(s, "disable", "off"), newLog(s), newTest(s))
	for _, sub := range cmd.Commands() { // the configuration has triggers before the project has sessions
		sub.Annotations = begins()
	}
	return cmd
}

func newList(s *settings) *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "List the triggers",
		Long: "List the triggers, with what each is for and when it did something last.\n" + hubStatusHelp,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return askHub(cmd, s, "trigger.list", nil, func(r protocol.TriggerList) error {
				if r.Problem != "" {
					progress(cmd, s, "%s", r.Problem)
				} else if !r.Enabled {
					progress(cmd, s, "all triggers are switched off; `duet-rpc triggers enable` switches them on")
				}
				for _, issue := range r.Issues {
					progress(cmd, s, "%s", issue)
				}
				t := term.NewTable(cmd.OutOrStdout(), "TRIGGER", "STATE", "WHEN", "DOES", "LAST")
				t.Below("WHEN", "DOES")
				t.Empty("there are no triggers; `duet-rpc config --defaults` shows how to write one, and those of a project need `duet-rpc trust`")
				for _, rule := range r.Triggers {
					t.Row(rule.ID, triggerState(rule), term.Short(rule.When), term.Short(describeTrigger(rule)), term.AgeOf(rule.LastFired))
				}
				return t.Flush()
			})
		},
	}
}

func newTriggersShow(s *settings) *cobra.Command {
	return &cobra.Command{
		Use: "show ID", Short: "Show a trigger",
		Long:    "Show a trigger's configuration, and its next time.\n" + hubStatusHelp,
		Example: "  duet-rpc triggers show tests",
		Args:    exactly("ID"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return withHub(cmd, s, func(ctx context.Context, c *client.Client) error {
				status, _, err := hubclient.Call[struct{ Triggers []json.RawMessage }](ctx, c, "trigger.list", nil)
				if err != nil {
					return err
				}
				for _, raw := range status.Triggers {
					var rule protocol.Trigger
					if err := json.Unmarshal(raw, &rule); err != nil {
						return err
					}
					if rule.ID != args[0] {
						continue
					}
					if s.JSON {
						return term.Raw(cmd.OutOrStdout(), raw)
					}
					fields := []term.Field{
						{"trigger", rule.ID},
						{"state", triggerState(rule)},
						{"description", rule.Description},
						{"when", rule.When},
						{"does", describeTrigger(rule)},
						{"next", rule.NextFire},
						{"last", rule.LastFired},
						{"file", fmt.Sprintf("%s:%d", rule.File, rule.Line)},
					}
					if rule.CooldownMS > 0 {
						fields = append(fields, term.Field{"cooldown", (time.Duration(rule.CooldownMS) * time.Millisecond).String()})
					}
					return term.Fields(cmd.OutOrStdout(), fields...)
				}
				return unknown(args[0])
			})
		},
	}
}

// triggerState returns "on" or "off".
func triggerState(t protocol.Trigger) string {
	if t.Enabled {
		return "on"
	}
	return "off"
}

// describeTrigger describes the action of a trigger.
func describeTrigger(t protocol.Trigger) string {
	if t.RequiresApproval {
		return t.Action.String() + " (asks first)"
	}
	return t.Action.String()
}

func unknown(id string) error {
	return fmt.Errorf("no trigger has the id %q; `duet-rpc triggers` lists them", term.Short(id))
}

func newSwitch(s *settings, verb, state string) *cobra.Command {
	return &cobra.Command{
		Use: verb + " [ID]", Short: "Switch a trigger " + state + ", or all",
		Long: "Switch a trigger " + state + ", or all as a whole. That holds until it is switched again,\nwhatever the file " +
			"says.\n" + hubStatusHelp,
		Example: "  duet-rpc triggers " + verb + " tests\n  duet-rpc triggers " + verb,
		Args:    atMost("ID"),
		RunE: func(cmd *cobra.Command, args []string) error {
			params := protocol.TriggerParams{}
			if len(args) > 0 {
				params.Trigger = args[0]
			}
			return withHub(cmd, s, func(ctx context.Context, c *client.Client) error {
				_, raw, err := hubclient.Call[protocol.TriggerSwitched](ctx, c, "trigger."+verb, params)
				switch {
				case client.KindOf(err) == domain.KindTriggerNotFound:
					return unknown(args[0])
				case err != nil:
					return err
				case s.JSON:
					return term.Raw(cmd.OutOrStdout(), raw)
				}
				what := "all triggers are"
				if len(args) > 0 {
					what = args[0] + " is"
				}
				progress(cmd, s, "%s switched %s", what, state)
				return nil
			})
		},
	}
}

// statusOfTrigger returns the status of an execution for people.
func statusOfTrigger(status string) string {
	if status == domain.TriggerWaiting {
		return domain.WaitingInput.Words()
	}
	return status
}

func newLog(s *settings) *cobra.Command {
	limit := uint(20)
	cmd := &cobra.Command{
		Use: "log [ID]", Short: "Show what triggers have done",
		Long:    "Show what triggers have done, or one of them, the newest first.\n" + hubStatusHelp,
		Example: "  duet-rpc triggers log tests --limit 5",
		Args:    atMost("ID"),
		RunE: func(cmd *cobra.Command, args []string) error {
			params := protocol.TriggerLogParams{Limit: &limit}
			if len(args) > 0 {
				params.Trigger = args[0]
			}
			return askHub(cmd, s, "trigger.log", params, func(r protocol.TriggerLog) error {
				t := term.NewTable(cmd.OutOrStdout(), "AGE", "TRIGGER", "STATUS", "EVENT", "TURN", "WHY")
				t.Below("EVENT", "WHY")
				t.Empty("no trigger has done anything yet")
				for _, x := range r.Executions {
					t.Row(term.AgeOf(x.Time), x.Trigger, statusOfTrigger(x.Status), x.EventType, cmp.Or(x.Turn, "-"), term.Short(x.Error))
				}
				return t.Flush()
			})
		},
	}
	cmd.Flags().UintVar(&limit, "limit", limit, "at most `N`, up to 500")
	return cmd
}

func newTest(s *settings) *cobra.Command {
	var payload string
	cmd := &cobra.Command{
		Use: "test SOURCE TYPE", Short: "Show what triggers would do for an event",
		Long: "Show what each trigger would do for an event, without doing it. Whether one is switched\non, its cooldown and its limits do " +
			"not count.\n" + hubStatusHelp,
		Example: "  duet-rpc triggers test turn turn.failed --payload '{\"task_id\":\"task-0007\"}'\n  duet-rpc triggers test watch " +
			"file.modify --payload '{\"path\":\"main.go\"}'",
		Args: exactly("SOURCE", "TYPE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			params := protocol.TriggerTestParams{Source: args[0], Type: args[1]}
			if payload != "" {
				if !json.Valid([]byte(payload)) {
					return fmt.Errorf("--payload: a JSON object, such as {\"path\":\"main.go\"}")
				}
				params.Payload = json.RawMessage(payload)
			}
			return askHub(cmd, s, "trigger.test", params, func(r protocol.TriggerTrials) error {
				t := term.NewTable(cmd.OutOrStdout(), "TRIGGER", "FITS", "DOES")
				t.Below("DOES")
				t.Empty("there are no triggers")
				for _, trial := range r.Trials {
					if trial.Fits {
						t.Row(trial.Trigger, "yes", term.Short(trial.Does.String()))
					} else {
						t.Row(trial.Trigger, "no", term.Short(trial.Why))
					}
				}
				return t.Flush()
			})
		},
	}
	cmd.Flags().StringVar(&payload, "payload", "", "the event's data, a JSON object")
	return cmd
}
