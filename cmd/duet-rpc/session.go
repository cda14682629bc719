package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/duet-rpc/duet-rpc/client"
)

const sessionHelp = `A session is a prompt and what an agent made of it; sessions that continue each
other are a conversation. Every command takes every id: that of the session, or
of its task, or of the conversation, which means its last session.
`

// listedSession is what is read of a session.
type listedSession struct {
	ID           string  `json:"id"`
	TaskID       string  `json:"task_id"`
	ThreadID     string  `json:"thread_id"`
	ParentID     string  `json:"parent_session_id"`
	Status       string  `json:"status"`
	State        string  `json:"state"`
	Agent        string  `json:"agent"`
	Query        string  `json:"query"`
	Title        string  `json:"title"`
	Model        string  `json:"model"`
	Mode         string  `json:"permission_mode"`
	WorkingDir   string  `json:"working_dir"`
	CreatedAt    string  `json:"created_at"`
	CompletedAt  string  `json:"completed_at"`
	LastActivity string  `json:"last_activity_at"`
	Error        string  `json:"error"`
	ErrorCode    string  `json:"error_code"`
	StopReason   string  `json:"stop_reason"`
	AgentSession string  `json:"claude_session_id"`
	TotalTokens  int     `json:"total_tokens"`
	Cost         float64 `json:"cost_usd"`
	Result       *struct {
		Result string `json:"result"`
	} `json:"result"`
}

// started is what is told of a run that was asked for, by whatever method.
type started struct {
	TaskID    string `json:"taskId"`
	Task      string `json:"task_id"`
	SessionID string `json:"session_id"`
	Agent     string `json:"agent"`
	State     string `json:"state"`
	Status    string `json:"status"`
}

// say prints the id of a run, or waits for its end.
func (r started) say(ctx context.Context, cmd *cobra.Command, s *settings, c *client.Client, raw json.RawMessage, wait bool) error {
	id := firstText(r.TaskID, r.Task)
	if !s.json {
		progress(cmd, s, "%s · agent %s · %s", id, r.Agent, firstText(r.State, r.Status))
	}
	switch {
	case wait:
		return waitFor(ctx, cmd, s, c, id, r.SessionID)
	case s.json:
		return printRaw(cmd.OutOrStdout(), raw)
	}
	_, err := fmt.Fprintln(cmd.OutOrStdout(), oneLine(id))
	return err
}

func newSessionCommand(s *settings) *cobra.Command {
	return group("session", "Start, list, continue and interrupt sessions in the project's hub", sessionHelp+hubStatusHelp,
		newSessionListCommand(s), newSessionShowCommand(s), newSessionLaunchCommand(s), newSessionContinueCommand(s),
		newSessionForkCommand(s), newSessionInterruptCommand(s))
}

func newSessionListCommand(s *settings) *cobra.Command {
	var p struct {
		Status   string `json:"status,omitempty"`
		Agent    string `json:"agent,omitempty"`
		Limit    int    `json:"limit,omitempty"`
		Archived bool   `json:"archived,omitempty"`
	}
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List sessions, the newest first",
		Long:  "List sessions, the newest first.\n" + hubStatusHelp,
		Args:  noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return withHub(cmd, s, func(ctx context.Context, c *client.Client) error {
				r, raw, err := ask[struct{ Sessions []listedSession }](ctx, c, "listSessions", p)
				if err != nil {
					return err
				}
				if s.json {
					return printRaw(cmd.OutOrStdout(), raw)
				}
				t := newTable(cmd.OutOrStdout(), "SESSION", "TASK", "STATUS", "AGENT", "ACTIVE", "TITLE")
				for _, x := range r.Sessions {
					t.row(x.ID, x.TaskID, x.Status, x.Agent, age(x.LastActivity), short(firstText(x.Title, x.Query)))
				}
				return t.flush()
			})
		},
	}
	oneOf(cmd, &p.Status, "status", "only sessions with this status",
		"draft", "starting", "running", "waiting_input", "interrupting", "interrupted", "completed", "failed", "discarded")
	agentFlag(cmd, s, &p.Agent, "only sessions of this agent")
	cmd.Flags().IntVar(&p.Limit, "limit", 20, "how many, 1000 at most")
	cmd.Flags().BoolVar(&p.Archived, "archived", false, "only archived sessions")
	return cmd
}

func newSessionShowCommand(s *settings) *cobra.Command {
	return &cobra.Command{
		Use:               "show ID",
		Short:             "Show a session, with the agent's last message",
		Long:              "Show a session, with the agent's last message.\n" + hubStatusHelp,
		Args:              exactly("ID"),
		ValidArgsFunction: completeFirst(s, taskIDs),
		RunE: func(cmd *cobra.Command, args []string) error {
			return withHub(cmd, s, func(ctx context.Context, c *client.Client) error {
				x, raw, err := sessionState(ctx, c, args[0])
				if err != nil {
					return err
				}
				if s.json {
					return printRaw(cmd.OutOrStdout(), raw)
				}
				return printSession(cmd, x)
			})
		},
	}
}

func sessionState(ctx context.Context, c *client.Client, id string) (listedSession, json.RawMessage, error) {
	r, raw, err := ask[struct{ Session listedSession }](ctx, c, "getSessionState", map[string]string{"session_id": id})
	return r.Session, raw, err
}

func printSession(cmd *cobra.Command, x listedSession) error {
	tokens, cost := "", ""
	if x.TotalTokens > 0 {
		tokens = fmt.Sprint(x.TotalTokens)
	}
	if x.Cost > 0 {
		cost = fmt.Sprintf("$%.4f", x.Cost)
	}
	out := cmd.OutOrStdout()
	err := printFields(out, field{"session", x.ID}, field{"task", x.TaskID}, field{"conversation", x.ThreadID}, field{"continues", x.ParentID},
		field{"status", x.Status}, field{"agent", x.Agent}, field{"model", x.Model}, field{"mode", x.Mode}, field{"title", x.Title},
		field{"query", x.Query}, field{"directory", x.WorkingDir}, field{"created", x.CreatedAt}, field{"ended", x.CompletedAt},
		field{"stop reason", x.StopReason}, field{"error", x.Error}, field{"error code", x.ErrorCode},
		field{"agent's session", x.AgentSession}, field{"tokens", tokens}, field{"cost", cost})
	if x.Result != nil {
		printBody(out, x.Result.Result)
	}
	return err
}

func newSessionLaunchCommand(s *settings) *cobra.Command {
	var p struct {
		Query string   `json:"query"`
		Agent string   `json:"agent,omitempty"`
		CWD   string   `json:"working_dir,omitempty"`
		Title string   `json:"title,omitempty"`
		Model string   `json:"model,omitempty"`
		Mode  string   `json:"permission_mode,omitempty"`
		Dirs  []string `json:"additional_directories,omitempty"`
	}
	var wait bool
	cmd := &cobra.Command{
		Use:         "launch [TEXT...]",
		Annotations: beginning(),
		Short:       "Start a session, and print its id",
		Long: "Start a session in a new conversation, and print its id. The prompt is the\n" +
			"arguments, or standard input if there are none.\n" + hubStatusHelp,
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if p.Query, err = promptText(cmd.InOrStdin(), args); err != nil {
				return err
			}
			if p.CWD, err = fullPath(p.CWD); err != nil {
				return err
			}
			return withHub(cmd, s, func(ctx context.Context, c *client.Client) error {
				r, raw, err := ask[started](ctx, c, "launchSession", p)
				if err != nil {
					return err
				}
				return r.say(ctx, cmd, s, c, raw, wait)
			})
		},
	}
	agentFlag(cmd, s, &p.Agent, "the agent to run (default: the configured one)")
	cmd.Flags().StringVar(&p.CWD, "cwd", "", "the directory in which it works (default: the project's root)")
	cmd.Flags().StringVar(&p.Title, "title", "", "what to call it")
	cmd.Flags().StringVar(&p.Model, "model", "", "a model that the agent knows")
	oneOf(cmd, &p.Mode, "mode", "what it may do without asking", permissionModes...)
	directories(cmd, "cwd", "add-dir")
	cmd.Flags().StringArrayVar(&p.Dirs, "add-dir", nil, "another directory that it may use; may be given several times")
	waitFlag(cmd, &wait)
	return cmd
}

func newSessionContinueCommand(s *settings) *cobra.Command {
	return newOnwardCommand(s, "continue ID [TEXT...]", "Ask on in a session's conversation",
		"Ask on in a session's conversation: in the same one if it is its last session or\n"+
			"has not ended, else in a fork that begins there. The prompt is the other\narguments, or standard input if there are none.\n", false)
}

func newSessionForkCommand(s *settings) *cobra.Command {
	return newOnwardCommand(s, "fork ID [TEXT...]", "Begin another conversation behind a session",
		"Begin another conversation behind a session, which knows what was said until\n"+
			"then, and leave the one that it is in as it is. The prompt is the other\narguments, or standard input if there are none.\n", true)
}

// newOnwardCommand makes a command that continues a session, or forks its
// conversation there.
func newOnwardCommand(s *settings, use, title, help string, fork bool) *cobra.Command {
	p := struct {
		ID    string `json:"session_id"`
		Query string `json:"query"`
		Fork  bool   `json:"fork,omitempty"`
	}{Fork: fork}
	var wait bool
	cmd := &cobra.Command{
		Use: use, Short: title, Long: help + hubStatusHelp, Annotations: beginning(),
		Args:              atLeast("ID"),
		ValidArgsFunction: completeFirst(s, taskIDs),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if p.Query, err = promptText(cmd.InOrStdin(), args[1:]); err != nil {
				return err
			}
			p.ID = args[0]
			return withHub(cmd, s, func(ctx context.Context, c *client.Client) error {
				r, raw, err := ask[started](ctx, c, "continueSession", p)
				if err != nil {
					return err
				}
				return r.say(ctx, cmd, s, c, raw, wait)
			})
		},
	}
	waitFlag(cmd, &wait)
	return cmd
}

func newSessionInterruptCommand(s *settings) *cobra.Command {
	return &cobra.Command{
		Use:               "interrupt ID",
		Short:             "Begin to end a session; it can be continued",
		Long:              "Begin to end a session, also while it waits for an answer. It can be continued.\n" + hubStatusHelp,
		Args:              exactly("ID"),
		ValidArgsFunction: completeFirst(s, taskIDs),
		RunE: func(cmd *cobra.Command, args []string) error {
			return withHub(cmd, s, func(ctx context.Context, c *client.Client) error {
				r, raw, err := ask[struct {
					Success bool
					Status  string
				}](ctx, c, "interruptSession", map[string]string{"session_id": args[0]})
				if err != nil {
					return err
				}
				if s.json {
					return printRaw(cmd.OutOrStdout(), raw)
				}
				if !r.Success {
					return errors.New(args[0] + " was not interrupted")
				}
				progress(cmd, s, "%s is %s", args[0], r.Status)
				return nil
			})
		},
	}
}

// fullPath is a directory as the hub understands it, which works in another
// one. The shell knows what ~ means, and so does the hub.
func fullPath(path string) (string, error) {
	if path == "" || strings.HasPrefix(path, "~") {
		return path, nil
	}
	full, err := filepath.Abs(path)
	if err != nil {
		return "", fmt.Errorf("finding %q: %w", path, err)
	}
	return full, nil
}
