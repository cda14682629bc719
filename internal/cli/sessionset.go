package cli

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/duet-rpc/duet-rpc/internal/cli/candidate"
	"github.com/duet-rpc/duet-rpc/internal/cli/invocation"
	"github.com/duet-rpc/duet-rpc/internal/cli/sessionview"
	"github.com/duet-rpc/duet-rpc/internal/wire"
)

const sessionSetHelp = `Set the agent of a session to a mode, a model, or values of its own options;
"duet-rpc session show" lists those that it has. An agent that works takes them at
once, or refuses them, and then nothing is changed; any other gets them with the
next prompt. An option without a value is not asked for any more.

With --agent another agent goes on with the conversation from the next prompt on: it
is told what was said, and may do nothing unasked that the one before might.
`

func newSessionSetCommand(s *invocation.Settings) *cobra.Command {
	var a agentSettings
	var agent string
	cmd := &cobra.Command{
		Use:               "set ID",
		Short:             "Set a session's agent to a mode, a model or an option, or have another agent go on",
		Long:              sessionSetHelp + invocation.HubStatusHelp,
		Example:           "  duet-rpc session set task-0001 --mode plan\n  duet-rpc session set task-0001 --agent codex\n  duet-rpc session set task-0001 --model opus --option thinking=high",
		Args:              invocation.Exactly("ID"),
		ValidArgsFunction: completeFirst(s, candidate.Tasks),
		RunE: func(cmd *cobra.Command, args []string) error {
			if a.isEmpty() && agent == "" {
				return errors.New("say what to set: --agent, --mode, --model or --option")
			}
			params := map[string]any{"session_id": args[0]}
			if agent != "" {
				params["agent"] = agent
			}
			if err := a.params(params); err != nil {
				return err
			}
			return invocation.AskHub(cmd, s, "session.set", params, func(r struct {
				Live    bool
				Session wire.Session
			},
			) error {
				when := "from the next prompt on"
				if r.Live {
					when = "now"
				}
				invocation.Progress(cmd, s, "%s is set %s", args[0], when)
				return nil
			})
		},
	}
	agentFlag(cmd, s, &agent, "have the agent `NAME` go on with the conversation")
	a.addFlags(cmd, s, knownByID)
	return cmd
}

func newSessionCommandsCommand(s *invocation.Settings) *cobra.Command {
	return &cobra.Command{
		Use:               "commands ID",
		Short:             "List the slash commands of a session's agent",
		Long:              "List the slash commands that the agent of a session has told of. A prompt may\nbegin with one.\n" + invocation.HubStatusHelp,
		Args:              invocation.Exactly("ID"),
		ValidArgsFunction: completeFirst(s, candidate.Tasks),
		RunE: func(cmd *cobra.Command, args []string) error {
			return invocation.AskHub(cmd, s, "getSessionState", map[string]string{"session_id": args[0]}, func(r struct{ Session wire.Session }) error {
				return sessionview.Commands(cmd.OutOrStdout(), r.Session)
			})
		},
	}
}
