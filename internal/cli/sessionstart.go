package cli

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/protocol"
)

func newSessionInterruptCommand(s *settings) *cobra.Command {
	var background, reason string
	cmd := &cobra.Command{
		Use:   "interrupt ID",
		Short: "Interrupt a session, or take back a queued prompt",
		Long: "Interrupt the turn at work in a session, such as 12, even one that waits for an answer;\nor a turn, such as 12.3, " +
			"also a queued one. It may take a moment to end, and the\nsession can be continued. If the turn has ended, this ends its agent's " +
			"background work.\n--background TASK stops one background task, if the agent supports that.\n" + hubStatusHelp,
		Args:              exactly("ID"),
		ValidArgsFunction: completeFirst(s, turnCandidates),
		RunE: func(cmd *cobra.Command, args []string) error {
			params := protocol.InterruptTurnParams{Turn: protocol.Ref(args[0]), Reason: reason, Background: background}
			return askHub(cmd, s, "turn.interrupt", params, func(r protocol.InterruptTurnResult) error {
				switch {
				case background != "":
					progress(cmd, s, "the background task %s ends", background)
				case r.State == domain.Completed:
					progress(cmd, s, "%s is completed; its agent's background work ends", r.Turn)
				default:
					progress(cmd, s, "%s is %s", r.Turn, domain.State(r.State).Words())
				}
				return nil
			})
		},
	}
	cmd.Flags().StringVar(&reason, "reason", "", "why, for the record")
	cmd.Flags().StringVar(&background, "background", "", "stop this background `TASK` alone: its id, as session show --json has it")
	return cmd
}

const sessionSetHelp = `Set the agent of a session to a mode, a model, or values of its own options;
"duet-rpc session show" lists those that it has. An agent that works takes them at
once, or refuses them, and then nothing is changed; any other gets them with the
next prompt. An option without a value is no longer requested.

With --agent another agent continues the session with the next prompt: it gets what
was said so far, and none of the rights of the previous agent.
`

func newSessionSetCommand(s *settings) *cobra.Command {
	var a agentSettings
	var agent string
	cmd := &cobra.Command{
		Use:   "set ID",
		Short: "Set a session's agent to a mode, a model or an option, or choose another agent",
		Long:  sessionSetHelp + hubStatusHelp,
		Example: "  duet-rpc session set 12 --mode plan\n  duet-rpc session set 12 --agent codex\n  duet-rpc session set 12 --model " +
			"opus --option thinking=high",
		Args:              exactly("ID"),
		ValidArgsFunction: completeFirst(s, turnCandidates),
		RunE: func(cmd *cobra.Command, args []string) error {
			if a.isEmpty() && agent == "" {
				return errors.New("say what to set: --agent, --mode, --model or --option")
			}
			params, err := a.params(args[0])
			if err != nil {
				return err
			}
			params.Agent = ifGiven(agent)
			return askHub(cmd, s, "session.set", params, func(r protocol.SetSessionResult) error {
				when := "from the next prompt on"
				if r.Live {
					when = "now"
				}
				progress(cmd, s, "session %d is set %s", r.Turn.Session, when)
				return nil
			})
		},
	}
	agentFlag(cmd, s, &agent, "continue the session with the agent `NAME`")
	a.addFlags(cmd, s, knownByID)
	return cmd
}
