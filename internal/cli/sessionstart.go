package cli

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/duet-rpc/duet-rpc/internal/cli/turn"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/hubclient"
	"github.com/duet-rpc/duet-rpc/internal/protocol"
)

func newSessionLaunchCommand(s *settings) *cobra.Command {
	return newStartingCommand(s, "session launch", "Start a session, and print its turn")
}

// newStartingCommand returns a command that starts a session. path is the command without the program.
func newStartingCommand(s *settings, path, short string) *cobra.Command {
	var agent, cwd, title string
	var dirs []string
	var priority int
	var gates gateFlags
	var a agentSettings
	var with turn.AttachFlags
	var wait bool
	var worktree *bool
	cmd := &cobra.Command{
		Use:         path[strings.LastIndexByte(path, ' ')+1:] + " [TEXT...]",
		Annotations: begins(),
		Short:       short,
		Long: "Start a session, or queue it if no slot is free, and print the number of its turn, such\n" +
			"as 12.1. The prompt is the arguments, or standard input if there are none. With\n" +
			"--gate COMMAND the agent continues until the command succeeds (docs/gates.md).\n\n" + turn.Help + hubStatusHelp,
		Example: fmt.Sprintf("  duet-rpc %[1]s \"Say hello\"\n  duet-rpc %[1]s --agent claude --wait \"Why does the build fail?\"", path),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			query, err := readPromptText(cmd.InOrStdin(), args)
			if err != nil {
				return err
			}
			if err = with.Read(cmd, s, args); err != nil {
				return err
			}
			if cwd, err = fullPath(cwd); err != nil {
				return err
			}
			if dirs, err = fullDirectories(dirs); err != nil {
				return err
			}
			options, err := agentOptionsValue(a.options)
			if err != nil {
				return err
			}
			if err := gates.Check(); err != nil {
				return err
			}
			return startWork(cmd, s, hubclient.SessionStart, protocol.StartParams{
				Prompt: query, Title: title, Agent: agent, WorkingDir: cwd, Mode: a.mode, Model: a.model, Options: options, Worktree: worktree,
				Priority: priority, Gated: gates.Gated(),
				AgentSettings: protocol.AgentSettings{AdditionalDirectories: dirs}, PromptContent: with.Content(),
			}, wait)
		},
	}
	agentFlag(cmd, s, &agent, "the agent to run (default: the configured one)")
	cmd.Flags().StringVar(&cwd, "cwd", "", "the directory in which the agent works (default: the project's root)")
	cmd.Flags().StringVar(&title, "title", "", "a title for it")
	worktreeFlag(cmd, &worktree)
	a.addFlags(cmd, s, knownByFlag)
	with.Add(cmd)
	directories(cmd, "cwd", "add-dir")
	cmd.Flags().StringArrayVar(&dirs, "add-dir", nil, "another directory that the agent may use; may be given several times")
	cmd.Flags().IntVar(&priority, "priority", 0, "of prompts that wait, the highest priority starts first")
	gates.Add(cmd)
	waitFlag(cmd, &wait)
	return cmd
}

func newSessionContinueCommand(s *settings) *cobra.Command {
	return newContinuingCommand(s, "continue ID [TEXT...]", "Continue a session with another prompt",
		"Continue a session, such as 12, with another prompt. A turn, such as 12.3, that is not\n"+
			"the last one and has ended is continued in a fork, which begins after it. The prompt\nis the other arguments, or standard input if "+
			"there are none.\n", false)
}

func newSessionForkCommand(s *settings) *cobra.Command {
	return newContinuingCommand(s, "fork ID [TEXT...]", "Start another session that begins with the turns of one",
		"Start another session that begins with everything said up to the end of a turn. The\n"+
			"session of that turn stays as it is. The prompt is the other arguments, or standard\ninput if there are none.\n", true)
}

// newContinuingCommand returns a command that continues a session or forks it.
func newContinuingCommand(s *settings, use, title, help string, fork bool) *cobra.Command {
	var with turn.AttachFlags
	var wait, steer bool
	var agent string
	var a agentSettings
	cmd := &cobra.Command{
		Use: use, Short: title, Long: help + hubStatusHelp, Annotations: begins(),
		Args:              atLeast("ID"),
		ValidArgsFunction: completeFirst(s, turnCandidates),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			query, err := readPromptText(cmd.InOrStdin(), args[1:])
			if err != nil {
				return err
			}
			if err = with.Read(cmd, s, args[1:]); err != nil {
				return err
			}
			options, err := agentOptionsValue(a.options)
			if err != nil {
				return err
			}
			next := protocol.NextTurn{PromptContent: with.Content()}
			if fork {
				return startWork(cmd, s, hubclient.SessionFork, protocol.ForkParams{
					Turn: protocol.Ref(args[0]), Prompt: query, Agent: agent, Mode: a.mode, Model: a.model, Options: options, NextTurn: next,
				}, wait)
			}
			params := protocol.PromptParams{Session: protocol.Ref(args[0]), Prompt: &query, NextTurn: next}
			if steer {
				params.Deliver = "steer"
			}
			return startWork(cmd, s, hubclient.SessionPrompt, params, wait)
		},
	}
	with.Add(cmd)
	waitFlag(cmd, &wait)
	if fork {
		agentFlag(cmd, s, &agent, "the agent that continues it (default: the same)")
		a.addFlags(cmd, s, knownByID)
	} else {
		cmd.Flags().BoolVar(&steer, "steer", false,
			"send it to the agent while it works, if the agent supports that; else it is the next prompt after the turn")
	}
	return cmd
}

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
				case r.State == hubclient.Completed:
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
