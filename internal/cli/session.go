package cli

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/duet-rpc/duet-rpc/client"
	"github.com/duet-rpc/duet-rpc/internal/cli/turn"
	"github.com/duet-rpc/duet-rpc/internal/wire"
)

const sessionHelp = `A session is a prompt and what an agent did about it; sessions that continue one
another are a conversation. Name a session by its own id, by that of its task, or
by that of its conversation, which means the last session in it. last means the
one that was begun last.
`

func newSessionCommand(s *settings) *cobra.Command {
	cmd := commandGroup("session", "Find, show, start, continue and put away sessions", sessionHelp+hubStatusHelp,
		newSessionListCommand(s), newSessionLaunchCommand(s), newSessionContinueCommand(s),
		newSessionForkCommand(s), newSessionInterruptCommand(s), newSessionSetCommand(s), newSessionCommandsCommand(s),
		newSessionAttachmentCommand(s), newAdopt(nativeSessions(s)))
	for _, one := range newSessions(findingOptions(s)) {
		if one.Name() == "delete" {
			addNativeDelete(one, nativeSessions(s))
		}
		cmd.AddCommand(one)
	}
	return cmd
}

func newSessionListCommand(s *settings) *cobra.Command {
	var p struct {
		Status   string `json:"status,omitempty"`
		Agent    string `json:"agent,omitempty"`
		Limit    int    `json:"limit,omitempty"`
		Archived bool   `json:"archived"`
	}
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List sessions, the newest first",
		Long:  "List sessions, the newest first.\n" + hubStatusHelp,
		Args:  noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return askHub(cmd, s, "listSessions", p, func(r struct{ Sessions []wire.Session }) error {
				return listOfSessions(cmd.OutOrStdout(), r.Sessions, noSession(p.Status, p.Agent, p.Archived))
			})
		},
	}
	oneOf(cmd, &p.Status, "status", "only sessions with this status",
		"draft", "starting", "running", "waiting_input", "interrupting", "interrupted", "completed", "failed", "discarded")
	agentFlag(cmd, s, &p.Agent, "only sessions of this agent")
	cmd.Flags().IntVar(&p.Limit, "limit", 20, "how many at most, up to 1000")
	cmd.Flags().BoolVar(&p.Archived, "archived", false, "only archived sessions")
	addAllProjects(cmd, allprojectsOptions{
		Settings: &s.Settings, JSON: func() bool { return s.JSON },
		Progress: func(cmd *cobra.Command, what string) { progress(cmd, s, "%s", what) },
	}, &p, &p.Limit)
	addNativeList(cmd, nativeSessions(s), &p.Agent, &p.Limit)
	cmd.MarkFlagsMutuallyExclusive("native", "all-projects")
	return cmd
}

// findingOptions are what the commands need that find and show sessions.
func findingOptions(s *settings) sessionsOptions {
	return sessionsOptions{
		JSON: func() bool { return s.JSON }, NoColor: func() bool { return s.NoColor }, Exactly: exactly, AtLeast: atLeast, Completes: completeFirst(s, taskCandidates),
		Hub: func(cmd *cobra.Command, do func(context.Context, *client.Client) error) error {
			return withHub(cmd, s, do)
		},
		Find: func(cmd *cobra.Command, id string) (found wire.Session, err error) {
			err = connected(cmd, s, func(ctx context.Context, c *client.Client) (err error) {
				found, _, err = wire.SessionState(ctx, c, id)
				return err
			})
			return found, turn.InWords(err)
		},
		Help: hubStatusHelp,
		AskYes: func(cmd *cobra.Command, question, no, again string) error {
			return askYes(cmd, s, question, no, again)
		},
		Progress: func(cmd *cobra.Command, what string) { progress(cmd, s, "%s", what) },
	}
}

func newSessionLaunchCommand(s *settings) *cobra.Command {
	var agent, cwd, title string
	var dirs []string
	var a agentSettings
	var with turn.AttachFlags
	var wait bool
	cmd := &cobra.Command{
		Use:         "launch [TEXT...]",
		Annotations: begins(),
		Short:       "Start a session, and print its id",
		Long: "Start a session in a new conversation, and print its id. The prompt is the\n" +
			"arguments, or standard input if there are none.\n\n" + turn.Help + hubStatusHelp,
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			params := map[string]any{}
			if params["query"], err = readPromptText(cmd.InOrStdin(), args); err != nil {
				return err
			}
			if err = with.Read(cmd, s, args); err != nil {
				return err
			}
			with.Into(params)
			if cwd, err = fullPath(cwd); err != nil {
				return err
			}
			if dirs, err = fullDirectories(dirs); err != nil {
				return err
			}
			if len(dirs) > 0 {
				params["additional_directories"] = dirs
			}
			members := map[string]string{"agent": agent, "working_dir": cwd, "title": title, "permission_mode": a.mode, "model": a.model}
			if err := a.addTo(params, members); err != nil {
				return err
			}
			return startWork(cmd, s, "launchSession", params, wait)
		},
	}
	agentFlag(cmd, s, &agent, "the agent to run (default: the configured one)")
	cmd.Flags().StringVar(&cwd, "cwd", "", "the directory in which the agent works (default: the project's root)")
	cmd.Flags().StringVar(&title, "title", "", "a title for it")
	a.addFlags(cmd, s, knownByFlag)
	with.Add(cmd)
	directories(cmd, "cwd", "add-dir")
	cmd.Flags().StringArrayVar(&dirs, "add-dir", nil, "another directory that the agent may use; may be given several times")
	waitFlag(cmd, &wait)
	return cmd
}

func newSessionContinueCommand(s *settings) *cobra.Command {
	return newContinuingCommand(s, "continue ID [TEXT...]", "Continue a session with another prompt",
		"Continue a session with another prompt: in the same conversation if it is the\n"+
			"last session there or has not ended, else in a fork that begins after it. The\nprompt is the other arguments, or standard input if there are none.\n", false)
}

func newSessionForkCommand(s *settings) *cobra.Command {
	return newContinuingCommand(s, "fork ID [TEXT...]", "Start another conversation that begins with a session",
		"Start another conversation that begins with everything said up to the end of a\n"+
			"session; the conversation of that session stays as it is. The prompt is the other\narguments, or standard input if there are none.\n", true)
}

// newContinuingCommand makes a command that continues a session, or forks its
// conversation there.
func newContinuingCommand(s *settings, use, title, help string, fork bool) *cobra.Command {
	var with turn.AttachFlags
	var wait, steer bool
	cmd := &cobra.Command{
		Use: use, Short: title, Long: help + hubStatusHelp, Annotations: begins(),
		Args:              atLeast("ID"),
		ValidArgsFunction: completeFirst(s, taskCandidates),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			params := map[string]any{"session_id": args[0], "fork": fork}
			if params["query"], err = readPromptText(cmd.InOrStdin(), args[1:]); err != nil {
				return err
			}
			if err = with.Read(cmd, s, args[1:]); err != nil {
				return err
			}
			with.Into(params)
			if steer {
				params["deliver"] = "steer"
			}
			return startWork(cmd, s, "continueSession", params, wait)
		},
	}
	with.Add(cmd)
	waitFlag(cmd, &wait)
	if !fork {
		cmd.Flags().BoolVar(&steer, "steer", false, "give it to the agent while it works, if it can take that; else it waits for the end of the turn")
	}
	return cmd
}

func newSessionInterruptCommand(s *settings) *cobra.Command {
	background := ""
	cmd := &cobra.Command{
		Use:               "interrupt ID",
		Short:             "Interrupt a session; it can be continued",
		Long:              "Interrupt a session, even one that waits for an answer. It may take a moment to\nend, and can be continued. Of a session that has ended this ends what its agent\ndoes in the background. --background TASK stops one such task, if the agent can\ndo that.\n" + hubStatusHelp,
		Args:              exactly("ID"),
		ValidArgsFunction: completeFirst(s, taskCandidates),
		RunE: func(cmd *cobra.Command, args []string) error {
			params := map[string]string{"session_id": args[0]}
			if background != "" {
				params["background"] = background
			}
			return askHub(cmd, s, "interruptSession", params, func(r struct {
				Success bool
				Status  string
			},
			) error {
				switch {
				case !r.Success:
					return errors.New(args[0] + " was not interrupted")
				case background != "":
					progress(cmd, s, "the background task %s ends", background)
				case r.Status == wire.Completed:
					progress(cmd, s, "%s is completed; what its agent still does for it ends", args[0])
				default:
					progress(cmd, s, "%s is %s", args[0], r.Status)
				}
				return nil
			})
		},
	}
	cmd.Flags().StringVar(&background, "background", "", "stop this background `TASK` alone: its id, as session show --json has it")
	return cmd
}

func newSessionAttachmentCommand(s *settings) *cobra.Command {
	return &cobra.Command{
		Use: "attachment ID", Args: exactly("ID"),
		Short: "Write an image, a sound or a file of a conversation to standard output",
		Long:  "Write an image, a sound or a file of a conversation to a file: > FILE.\n" + hubStatusHelp,
		RunE: func(cmd *cobra.Command, args []string) error {
			if s.JSON {
				return askHub(cmd, s, "getAttachment", map[string]string{"id": args[0]}, func(any) error { return nil })
			}
			return withHub(cmd, s, func(ctx context.Context, c *client.Client) error {
				return turn.SaveAttachment(ctx, c, cmd.OutOrStdout(), args[0])
			})
		},
	}
}

const sessionSetHelp = `Set the agent of a session to a mode, a model, or values of its own options;
"duet-rpc session show" lists those that it has. An agent that works takes them at
once, or refuses them, and then nothing is changed; any other gets them with the
next prompt. An option without a value is not asked for any more.

With --agent another agent goes on with the conversation from the next prompt on: it
is told what was said, and may do nothing unasked that the one before might.
`

func newSessionSetCommand(s *settings) *cobra.Command {
	var a agentSettings
	var agent string
	cmd := &cobra.Command{
		Use:               "set ID",
		Short:             "Set a session's agent to a mode, a model or an option, or have another agent go on",
		Long:              sessionSetHelp + hubStatusHelp,
		Example:           "  duet-rpc session set task-0001 --mode plan\n  duet-rpc session set task-0001 --agent codex\n  duet-rpc session set task-0001 --model opus --option thinking=high",
		Args:              exactly("ID"),
		ValidArgsFunction: completeFirst(s, taskCandidates),
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
	agentFlag(cmd, s, &agent, "have the agent `NAME` go on with the conversation")
	a.addFlags(cmd, s, knownByID)
	return cmd
}

func newSessionCommandsCommand(s *settings) *cobra.Command {
	return &cobra.Command{
		Use:               "commands ID",
		Short:             "List the slash commands of a session's agent",
		Long:              "List the slash commands that the agent of a session has told of. A prompt may\nbegin with one.\n" + hubStatusHelp,
		Args:              exactly("ID"),
		ValidArgsFunction: completeFirst(s, taskCandidates),
		RunE: func(cmd *cobra.Command, args []string) error {
			return askHub(cmd, s, "getSessionState", map[string]string{"session_id": args[0]}, func(r struct{ Session wire.Session }) error {
				return sessionCommands(cmd.OutOrStdout(), r.Session)
			})
		},
	}
}
