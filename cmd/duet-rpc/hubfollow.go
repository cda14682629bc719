package main

import (
	"context"
	"encoding/json"
	"errors"
	"io"

	"github.com/spf13/cobra"

	"github.com/duet-rpc/duet-rpc/client"
	values "github.com/duet-rpc/duet-rpc/internal/domain"
)

// waitFlag adds --wait.
func waitFlag(cmd *cobra.Command, wait *bool) {
	cmd.Flags().BoolVar(wait, "wait", false, "show what the agent does until it ends; exit status 1 unless it completes")
}

// waitFor shows a run from its beginning to its end, and then tells how it
// ended by its exit status. With --json it prints what task.get tells at the
// end, and nothing else. The run goes on if this is interrupted.
func waitFor(ctx context.Context, cmd *cobra.Command, s *settings, c *client.Client, task, session string) error {
	ctx, cancel := whileThere(ctx, c)
	defer cancel()
	out, side := cmd.OutOrStdout(), cmd.ErrOrStderr()
	if s.json {
		out, side = io.Discard, io.Discard
	}
	view := newPromptView(out, side, s)
	view.asJSON = false
	view.session, _, _ = sessionState(ctx, c, session) // else names in diffs stay as they are
	view.session.ID = session
	ended := make(chan struct{})
	over, asked := false, make(map[string]bool) // for the handler alone
	sub, err := c.Subscribe(ctx, client.SubscribeOptions{Session: session, Since: new(int64)}, func(e client.Event) {
		if over {
			return
		}
		switch view.show(e) {
		case noticeAsks:
			if q := askingOf(e); !asked[q.ApprovalID] {
				asked[q.ApprovalID] = true
				id := q.ApprovalID[:min(len(q.ApprovalID), shortID)]
				q.lay(ctx, c, view.session.WorkingDir)
				lines, _ := q.sheet.Excerpt(": duet-rpc approvals show " + id + " shows all")
				view.lines(lines)
				view.note("answer with: duet-rpc approvals approve " + id + ", or deny or respond")
			}
		case noticeEnds:
			over = true
			view.line()
			close(ended)
		case noticeShown, noticeResolves:
		}
	})
	if err != nil {
		return unlessGone(ctx, err)
	}
	defer sub.Close()
	select {
	case <-ended:
	case <-sub.Done():
		return errors.Join(errors.New("the hub tells nothing more of it"), sub.Err())
	case <-ctx.Done():
		if cause := context.Cause(ctx); errors.Is(cause, errHubGone) {
			return cause
		}
		progress(cmd, s, "%s goes on; end it with: duet-rpc task cancel %s", task, task)
		return ctx.Err()
	}
	t, raw, err := ask[taskState](ctx, c, "task.get", map[string]string{"taskId": task})
	if err != nil {
		return unlessGone(ctx, err)
	}
	if s.json {
		err = printRaw(cmd.OutOrStdout(), raw)
	} else {
		progress(cmd, s, "%s", t.ending())
	}
	if err == nil && t.State != string(values.Completed) {
		err = exitStatus(1)
	}
	return err
}

// taskState is what is read of task.get.
type taskState struct {
	listedTask
	SessionID   string          `json:"session_id"`
	ThreadID    string          `json:"thread_id"`
	CWD         string          `json:"cwd"`
	Title       string          `json:"title"`
	StartedAt   string          `json:"startedAt"`
	CompletedAt string          `json:"completedAt"`
	Output      string          `json:"output"`
	Error       string          `json:"error"`
	ErrorCode   string          `json:"error_code"`
	Metadata    json.RawMessage `json:"metadata"`
}

// ending is how a task ended, in words.
func (t taskState) ending() string {
	text := t.ID + " " + t.State
	if t.State != string(values.Completed) && t.Error != "" {
		text += ": " + t.Error
		if t.ErrorCode != "" {
			text += " (" + t.ErrorCode + ")"
		}
	}
	return text + "; go on with: duet-rpc session continue " + t.ID + " \"…\""
}
