package cli

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/duet-rpc/duet-rpc/internal/cli/output"
	"github.com/duet-rpc/duet-rpc/internal/cli/wire"
)

const sessionSetHelp = `Set the agent of a session to a mode, a model, or values of its own options;
"duet-rpc session show" lists those that it has. An agent that works takes them at
once, or refuses them, and then nothing is changed; any other gets them with the
next prompt. An option without a value is not asked for any more.
`

func newSessionSetCommand(s *settings) *cobra.Command {
	var a agentSettings
	cmd := &cobra.Command{
		Use:               "set ID",
		Short:             "Set a session's agent to a mode, a model or an option",
		Long:              sessionSetHelp + hubStatusHelp,
		Example:           "  duet-rpc session set task-0001 --mode plan\n  duet-rpc session set task-0001 --model opus --option thinking=high",
		Args:              exactly("ID"),
		ValidArgsFunction: completeFirst(s, taskIDs),
		RunE: func(cmd *cobra.Command, args []string) error {
			if a.isEmpty() {
				return errors.New("say what to set: --mode, --model or --option")
			}
			params := map[string]any{"session_id": args[0]}
			if err := a.params(params, "mode"); err != nil {
				return err
			}
			return askHub(cmd, s, "session.set", params, func(r struct {
				Live    bool
				Session wire.Session
			},
			) error {
				when := "from the next prompt on"
				if r.Live {
					when = "now"
				}
				progress(cmd, s, "%s is set %s", args[0], when)
				return nil
			})
		},
	}
	a.addFlags(cmd, s, knownByID)
	return cmd
}

func newSessionCommandsCommand(s *settings) *cobra.Command {
	return &cobra.Command{
		Use:               "commands ID",
		Short:             "List the slash commands of a session's agent",
		Long:              "List the slash commands that the agent of a session has told of. A prompt may\nbegin with one.\n" + hubStatusHelp,
		Args:              exactly("ID"),
		ValidArgsFunction: completeFirst(s, taskIDs),
		RunE: func(cmd *cobra.Command, args []string) error {
			return askHub(cmd, s, "getSessionState", map[string]string{"session_id": args[0]}, func(r struct{ Session wire.Session }) error {
				t := output.NewTable(cmd.OutOrStdout(), "COMMAND", "INPUT", "DESCRIPTION")
				for _, c := range r.Session.Told.Commands {
					t.Row("/"+c.Name, output.Short(c.InputHint), output.Short(c.Description))
				}
				return t.Flush()
			})
		},
	}
}

// agentFields are what a session's agent is set to, and what it can be set to.
func agentFields(x wire.Session) []output.Field {
	told := x.Told
	mode, model := x.Mode, x.Model
	if x.AgentMode != "" && x.AgentMode != x.Mode {
		mode += ", the agent is in " + x.AgentMode
	}
	if x.WantedMode != "" {
		mode += ", asked for: " + x.WantedMode
	}
	if x.WantedModel != "" {
		model += ", asked for: " + x.WantedModel
	}
	fields := []output.Field{{"mode", mode}, {"modes", idsOf(x.ModesKnown)}, {"model", model}}
	if told.Model != nil {
		fields = append(fields, output.Field{"models", idsOf(told.Model.Available)})
	}
	for _, o := range told.Options {
		if o.Category != "mode" && o.Category != "model" {
			text := o.Current
			if len(o.Values) > 0 {
				text += " (" + idsOf(o.Values) + ")"
			}
			fields = append(fields, output.Field{"option " + o.ID, strings.TrimSpace(text)})
		}
	}
	var names []string
	for _, c := range told.Commands {
		names = append(names, "/"+c.Name)
	}
	fields = append(fields, output.Field{"commands", strings.Join(names, " ")})
	if a := told.Agent; a != nil {
		fields = append(fields, output.Field{"agent's program", strings.TrimSpace(fmt.Sprintf("%s %s", a.Name, a.Version))})
	}
	if i := told.Info; i != nil {
		fields = append(fields, output.Field{"agent's title", i.Title})
	}
	return fields
}

func idsOf(choices []wire.Choice) string {
	var ids []string
	for _, c := range choices {
		ids = append(ids, c.ID)
	}
	return strings.Join(ids, ", ")
}
