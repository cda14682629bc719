package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/duet-rpc/duet-rpc/client"
	"github.com/duet-rpc/duet-rpc/internal/dialect"
	values "github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/hub"
	"github.com/duet-rpc/duet-rpc/internal/question"
)

const approvalsHelp = `List what agents ask: whether a tool may run, or something else. Whoever answers
first wins, and there is no hurry.

An id may be shortened to a beginning that no other open question has.
`

// shortID is how much of a question's id is shown, unless another one begins
// like it.
const shortID = 8

// listedApproval is what is read of an approval.
type listedApproval struct {
	ID        string                 `json:"approval_id"`
	CallID    string                 `json:"call_id"`
	ToolUseID string                 `json:"tool_use_id"`
	TaskID    string                 `json:"task_id"`
	ThreadID  string                 `json:"thread_id"`
	Agent     string                 `json:"agent"`
	Type      string                 `json:"type"`
	Tool      string                 `json:"tool_name"`
	Input     json.RawMessage        `json:"tool_input"`
	Title     string                 `json:"title"`
	Subject   string                 `json:"subject"`
	Options   []hub.PermissionOption `json:"options"`
	Diff      string                 `json:"diff"`
	Status    string                 `json:"status"`
	Stale     bool                   `json:"stale"`
	Reopened  string                 `json:"reopened"`
	Truncated bool                   `json:"truncated"`
	SessionID string                 `json:"session_id"`
	CreatedAt string                 `json:"created_at"`
	Deadline  string                 `json:"deadline"`
	Comment   string                 `json:"comment"`
	Response  string                 `json:"response"`
	DecidedBy string                 `json:"decided_by"`
}

// asks is what is asked, in words.
func (a listedApproval) asks() string {
	text := firstText(a.Title, a.Subject, a.Tool)
	if a.Tool != "" && !strings.Contains(text, a.Tool) {
		text = a.Tool + ": " + text
	}
	return text
}

// askedAgain goes before what is asked, where that was answered before.
func (a listedApproval) askedAgain() string {
	if a.Reopened == "" {
		return ""
	}
	return "again: "
}

// sheet is the question as it is shown, of a session that works in a directory.
func (a listedApproval) sheet(dir string) question.Sheet {
	q := question.Question{Title: a.Title, Subject: a.Subject, Input: a.Input, Diff: a.Diff, Dir: dir, Reopened: a.Reopened, Cut: a.Truncated}
	if a.Type == values.FunctionCall {
		q.Tool = firstText(a.Tool, "a tool")
		return question.Lay(q, shown)
	}
	for _, o := range a.Options {
		q.Options = append(q.Options, o.Name)
	}
	return question.Lay(q, shown)
}

func newApprovalsCommand(s *settings) *cobra.Command {
	var wait bool
	var session string
	cmd := &cobra.Command{
		Use:   "approvals",
		Short: "List and answer what agents ask",
		Long:  approvalsHelp + hubStatusHelp,
		Args:  noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return withHub(cmd, s, func(ctx context.Context, c *client.Client) error {
				if wait {
					if err := waitForQuestion(ctx, c, session); err != nil {
						return err
					}
				}
				open, raw, err := openApprovals(ctx, c, session)
				if err != nil {
					return err
				}
				if s.json {
					return printRaw(cmd.OutOrStdout(), raw)
				}
				t := newTable(cmd.OutOrStdout(), "ID", "TASK", "AGENT", "AGE", "ASKS")
				for _, a := range open {
					t.row(shortest(a.ID, open), a.TaskID, a.Agent, age(a.CreatedAt), short(a.askedAgain()+a.asks()))
				}
				return t.flush()
			})
		},
	}
	cmd.Flags().BoolVar(&wait, "wait", false, "wait until there is one")
	cmd.Flags().StringVar(&session, "session", "", "only those of this session, by any of its ids")
	_ = cmd.RegisterFlagCompletionFunc("session", completeAll(s, taskIDs))
	cmd.AddCommand(newApprovalsShowCommand(s), newApproveCommand(s), newDenyCommand(s), newRespondCommand(s), newRulesCommand(s), newForgetCommand(s))
	return cmd
}

func openApprovals(ctx context.Context, c *client.Client, session string) ([]listedApproval, json.RawMessage, error) {
	params := map[string]string{}
	if session != "" {
		params["session_id"] = session
	}
	r, raw, err := ask[struct{ Approvals []listedApproval }](ctx, c, "fetchApprovals", params)
	return r.Approvals, raw, err
}

// waitForQuestion waits until somebody asks: a subscription begins with what
// is open.
func waitForQuestion(ctx context.Context, c *client.Client, session string) error {
	ctx, cancel := whileThere(ctx, c)
	defer cancel()
	asked := make(chan struct{}, 1)
	sub, err := c.Subscribe(ctx, client.SubscribeOptions{Types: []string{dialect.TypeApproval}, Session: session}, func(client.Event) {
		select {
		case asked <- struct{}{}:
		default:
		}
	})
	if err != nil {
		return unlessGone(ctx, err)
	}
	defer sub.Close()
	for {
		if open, _, err := openApprovals(ctx, c, session); err != nil || len(open) > 0 {
			return err
		}
		select {
		case <-asked: // and perhaps answered by now
		case <-sub.Done():
			return errors.Join(errors.New("the hub tells nothing more"), sub.Err())
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// shortest is the beginning of an id that no other one has.
func shortest(id string, open []listedApproval) string {
	for n := shortID; n < len(id); n++ {
		same := 0
		for _, a := range open {
			if strings.HasPrefix(a.ID, id[:n]) {
				same++
			}
		}
		if same <= 1 {
			return id[:n]
		}
	}
	return id
}

// findApproval finds what a word means: an open question's id, the beginning
// of one, or its tool call. A question that is not open is asked for by its
// whole id.
func findApproval(ctx context.Context, c *client.Client, word string) (listedApproval, json.RawMessage, error) {
	open, _, err := openApprovals(ctx, c, "")
	if err != nil {
		return listedApproval{}, nil, err
	}
	var fit []string
	for _, a := range open {
		switch {
		case a.ID == word:
			fit = []string{a.ID}
		case strings.HasPrefix(a.ID, word), a.CallID == word, a.ToolUseID == word:
			fit = append(fit, a.ID)
			continue
		default:
			continue
		}
		break
	}
	id := word
	switch {
	case len(fit) == 1:
		id = fit[0]
	case len(fit) > 1:
		return listedApproval{}, nil, fmt.Errorf("%q means %d open questions: %s", word, len(fit), strings.Join(fit, ", "))
	}
	r, raw, err := ask[struct{ Approval listedApproval }](ctx, c, "getApproval", map[string]string{"approval_id": id})
	return r.Approval, raw, err
}

// approvalIDs lists the open questions.
func approvalIDs(ctx context.Context, c *client.Client) []string {
	open, _, _ := openApprovals(ctx, c, "")
	var out []string
	for _, a := range open {
		out = append(out, a.ID+"\t"+short(a.TaskID+" · "+a.asks()))
	}
	return out
}

func newApprovalsShowCommand(s *settings) *cobra.Command {
	return &cobra.Command{
		Use:   "show ID",
		Short: "Show all of a question: the tool's input, the diff, the options",
		Long: "Show all of a question: the tool's input, what it would change, the options; on a\n" +
			"terminal with $PAGER or less.\n" + hubStatusHelp,
		Args:              exactly("ID"),
		ValidArgsFunction: completeFirst(s, approvalIDs),
		RunE: func(cmd *cobra.Command, args []string) error {
			return withHub(cmd, s, func(ctx context.Context, c *client.Client) error {
				a, raw, err := findApproval(ctx, c, args[0])
				if err != nil {
					return err
				}
				out := cmd.OutOrStdout()
				if s.json {
					return printRaw(out, raw)
				}
				stale := ""
				if a.Stale {
					stale = "the agent that asked is gone; approving continues its session"
				}
				fields := []field{
					{"question", a.ID},
					{"task", a.TaskID},
					{"agent", a.Agent},
					{"status", a.Status},
					{"asks", a.asks()},
					{"subject", a.Subject},
					{"stale", stale},
					{"asked", a.CreatedAt},
					{"deadline", a.Deadline},
					{"decided by", a.DecidedBy},
					{"comment", a.Comment},
					{"response", a.Response},
				}
				for i, o := range a.Options {
					fields = append(fields, field{"option " + strconv.Itoa(i+1), o.Name})
				}
				text := &strings.Builder{}
				_ = printFields(text, fields...)                   // a Builder takes all
				session, _, _ := sessionState(ctx, c, a.SessionID) // else names stay as they are
				for i, line := range a.sheet(session.WorkingDir).Details() {
					if i == 0 {
						text.WriteString("\n")
					}
					text.WriteString(line.Text + "\n")
				}
				return pageText(out, text.String())
			})
		},
	}
}

// A decision is what sendDecision takes.
type decision struct {
	ID       string          `json:"approval_id"`
	Decision string          `json:"decision"`
	Comment  string          `json:"comment,omitempty"`
	Option   string          `json:"option,omitempty"`
	Scope    string          `json:"scope,omitempty"`
	Input    json.RawMessage `json:"updated_input,omitempty"`
}

// send answers a question.
func (d decision) send(ctx context.Context, cmd *cobra.Command, s *settings, c *client.Client) error {
	r, raw, err := ask[struct {
		Success       bool
		Error, Status string
	}](ctx, c, "sendDecision", d)
	if err != nil {
		return err
	}
	if s.json {
		if err := printRaw(cmd.OutOrStdout(), raw); err != nil || r.Success {
			return err
		}
		return exitStatus(1)
	}
	if !r.Success {
		return errors.New(oneLine(firstText(r.Error, "the question could not be answered")))
	}
	progress(cmd, s, "%s: %s", d.ID[:min(len(d.ID), shortID)], r.Status)
	return nil
}

func scopeFlag(cmd *cobra.Command, d *decision) {
	oneOf(cmd, &d.Scope, "scope", "whether it becomes a rule", "once", "session", "project")
}

func newApproveCommand(s *settings) *cobra.Command {
	d := decision{Decision: "approve"}
	var input string
	cmd := &cobra.Command{
		Use:   "approve ID",
		Short: "Allow what an agent asks",
		Long: "Allow what an agent asks, also with another input for the tool, or for the rest\n" +
			"of the session or in the whole project.\n" + hubStatusHelp,
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
			return withHub(cmd, s, func(ctx context.Context, c *client.Client) error {
				a, _, err := findApproval(ctx, c, args[0])
				if err != nil {
					return err
				}
				d.ID = a.ID
				return d.send(ctx, cmd, s, c)
			})
		},
	}
	cmd.Flags().StringVar(&input, "edit-input", "", "what the tool gets instead, a JSON object")
	cmd.Flags().StringVar(&d.Comment, "comment", "", "why, for the record")
	scopeFlag(cmd, &d)
	return cmd
}

func newDenyCommand(s *settings) *cobra.Command {
	d := decision{Decision: "deny"}
	cmd := &cobra.Command{
		Use:               "deny ID REASON...",
		Short:             "Deny what an agent asks, and tell it why",
		Long:              "Deny what an agent asks, and tell it why.\n" + hubStatusHelp,
		Example:           "  duet-rpc approvals deny 7787605b use a branch",
		Args:              atLeast("ID", "REASON"),
		ValidArgsFunction: completeFirst(s, approvalIDs),
		RunE: func(cmd *cobra.Command, args []string) error {
			return withHub(cmd, s, func(ctx context.Context, c *client.Client) error {
				a, _, err := findApproval(ctx, c, args[0])
				if err != nil {
					return err
				}
				d.ID, d.Comment = a.ID, strings.Join(args[1:], " ")
				return d.send(ctx, cmd, s, c)
			})
		},
	}
	scopeFlag(cmd, &d)
	return cmd
}

func newRespondCommand(s *settings) *cobra.Command {
	return &cobra.Command{
		Use:   "respond ID TEXT...",
		Short: "Answer a question that is not about a tool",
		Long: "Answer a question that is not about a tool: with one of its options, by name or\n" +
			"number (`duet-rpc approvals show ID`), or in your own words.\n" + hubStatusHelp,
		Args:              atLeast("ID", "TEXT"),
		ValidArgsFunction: completeFirst(s, approvalIDs),
		RunE: func(cmd *cobra.Command, args []string) error {
			return withHub(cmd, s, func(ctx context.Context, c *client.Client) error {
				a, _, err := findApproval(ctx, c, args[0])
				if err != nil {
					return err
				}
				d := decision{ID: a.ID, Decision: "respond", Comment: strings.Join(args[1:], " ")}
				for i, o := range a.Options {
					if d.Comment == strconv.Itoa(i+1) || d.Comment == o.OptionID || strings.EqualFold(d.Comment, o.Name) {
						d.Option, d.Comment = o.OptionID, o.Name
						break
					}
				}
				return d.send(ctx, cmd, s, c)
			})
		},
	}
}
