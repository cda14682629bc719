// Package leftopen puts the questions that were left open when their hub ended to
// whoever sits at the terminal, and shows what goes on after each answer.
package leftopen

import (
	"context"
	"errors"

	"github.com/duet-rpc/duet-rpc/client"
	"github.com/duet-rpc/duet-rpc/internal/cli/interrupt"
	"github.com/duet-rpc/duet-rpc/internal/cli/output"
	"github.com/duet-rpc/duet-rpc/internal/cli/turn"
	"github.com/duet-rpc/duet-rpc/internal/wire"
)

// ErrNone says that no question was left open.
var ErrNone = errors.New("no question is open")

// Any looks whether there is a question, of a session by any of its ids or of all; its
// error is ErrNone if not.
func Any(session string) func(context.Context, *client.Client) error {
	return func(ctx context.Context, c *client.Client) error {
		open, _, err := wire.OpenApprovals(ctx, c, session)
		if err == nil && len(open) == 0 {
			return ErrNone
		}
		return err
	}
}

// Options say which questions, and how what goes on is attended.
type Options struct {
	Session string // by any of its ids; "": of all
	Here    bool   // this process is the hub, and what goes on ends with it
	Attend  turn.Options
}

// GoThrough puts the questions, the oldest first. What an answer lets go on is shown to
// its end before the next question. It returns the error interrupt.Err where it was
// interrupted.
func GoThrough(ctx context.Context, c *client.Client, view *turn.View, o Options) error {
	open, _, err := wire.OpenApprovals(ctx, c, o.Session)
	if err != nil {
		return err
	}
	if o.Here {
		view.Note("no hub runs here: a session that you answer goes on in this process, until it ends")
	} else {
		view.Note("no hub ran here; one was started, in which a session that you answer goes on")
	}
	asked := make(map[string]bool) // the sessions
	for i, a := range open {
		if asked[a.SessionID] {
			continue
		}
		asked[a.SessionID] = true
		left, err := turn.Inbox(ctx, c, view, turn.InboxOptions{
			Session: a.SessionID, Once: true, Others: othersThan(a.SessionID, open[i:]), Signals: o.Attend.Signals,
		})
		if err != nil || left {
			return err
		}
		if err := follow(ctx, c, view, a, o); err != nil {
			return err
		}
	}
	left, _, err := wire.OpenApprovals(ctx, c, o.Session)
	if err == nil && len(left) > 0 {
		view.Note(output.Count(len(left), "question") + " left open")
	}
	return err
}

// othersThan is how many questions are of other sessions.
func othersThan(session string, open []wire.Approval) (n int) {
	for _, a := range open {
		if a.SessionID != session {
			n++
		}
	}
	return n
}

// follow shows what goes on after an answer, or says that nothing does.
func follow(ctx context.Context, c *client.Client, view *turn.View, a wire.Approval, o Options) error {
	answered, _, err := wire.GetApproval(ctx, c, a.ID)
	if err != nil || answered.Status == a.Status { // it was left open
		return err
	}
	session, _, err := wire.SessionState(ctx, c, a.ThreadID) // the last in it
	if err != nil {
		return err
	}
	if wire.Ended(session.State) {
		view.Note("the answer is kept, and nothing goes on before " + output.Line(a.TaskID) + " is continued")
		return nil
	}
	session, interrupted, err := turn.Attend(ctx, c, view, session, o.Attend)
	if err != nil {
		return err
	}
	view.Here = o.Here
	view.End(session)
	if interrupted {
		return interrupt.Err
	}
	return nil
}

// WhatFollows says what an answer leads to whose agent is gone.
func WhatFollows(a wire.Approval, d wire.Decision, here bool) string {
	where := "in this process, until it ends"
	if !here {
		where = "in the hub that was started for it"
	}
	if d.Decision == wire.Approve || d.Decision == wire.Respond || d.Tell {
		return output.Line("no hub ran here, and the agent that asked is gone: its session goes on after " + a.TaskID + ", " + where)
	}
	return output.Line("no hub ran here, and the agent that asked is gone: the answer is kept, and nothing goes on before " + a.TaskID + " is continued")
}
