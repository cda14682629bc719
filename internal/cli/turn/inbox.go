package turn

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/duet-rpc/duet-rpc/client"
	"github.com/duet-rpc/duet-rpc/internal/cli/term"
	"github.com/duet-rpc/duet-rpc/internal/wire"
)

// InboxOptions say which questions are gone through.
type InboxOptions struct {
	Session string // by any of its ids; "": of all
	Once    bool   // those that are open, and no others
	Others  int    // that follow these, elsewhere

	Signals <-chan os.Signal // each ends it
}

// Inbox puts the open questions to whoever sits at the terminal, the oldest first,
// and waits for others, until somebody leaves, of which left tells; a signal is the
// error interrupt.Err. It ends with the connection to the hub.
func Inbox(ctx context.Context, c *client.Client, view *View, o InboxOptions) (left bool, err error) {
	ctx, cancel := wire.WhileConnected(ctx, c)
	defer cancel()
	ctx, leave := context.WithCancelCause(ctx)
	defer leave(nil)
	a := newAsker(Options{Signals: o.Signals}, view, c)
	a.isInbox = true
	a.interrupt = func(os.Signal) { leave(term.ErrInterrupted) }
	a.leave = func() { left = true; leave(nil) }
	defer a.lines()
	var stopContinued func()
	a.continued, stopContinued = term.Continued()
	defer stopContinued()

	if o.Session != "" { // subscriptions go by its own id
		session, _, err := wire.SessionState(ctx, c, o.Session)
		if err != nil {
			return false, wire.OrGone(ctx, err)
		}
		o.Session = session.ID
	}
	events := make(chan client.Event)
	sub, err := c.Subscribe(ctx, client.SubscribeOptions{Session: o.Session, Types: []string{wire.EventApproval, wire.EventResolved}}, func(e client.Event) {
		select {
		case events <- e:
		case <-ctx.Done():
		}
	})
	if err != nil {
		return false, wire.OrGone(ctx, err)
	}
	defer func() { leave(nil); sub.Close() }()
	open, _, err := wire.OpenApprovals(ctx, c, o.Session)
	if err != nil {
		return false, wire.OrGone(ctx, err)
	}
	for i, approval := range open {
		a.coming = len(open) - i - 1 + o.Others
		a.ask(ctx, approval)
	}
	told := false // that there is none
	for {
		if len(a.waiting) > 0 {
			told = false
		} else if o.Once {
			return left, nil
		} else if !told {
			told = true
			text := "no question is open; waiting for the next, C-c ends"
			if a.skipped > 0 {
				text = "no other question is open (" + term.Count(a.skipped, "question") + " left); waiting for the next, C-c ends"
			}
			view.Note(text)
		}
		a.promptAgain()
		select {
		case e := <-events:
			switch {
			case e.Type == wire.EventResolved:
				a.resolved(wire.DataOf(e))
			case !o.Once:
				approval := wire.ApprovalOf(e)
				if a.seen[approval.ID] {
					continue
				}
				if whole, _, err := wire.GetApproval(ctx, c, approval.ID); err == nil { // with its agent and its time
					approval = whole
				}
				a.ask(ctx, approval)
			}
		case line := <-a.typed:
			a.answered(ctx, line)
		case <-a.continued:
			a.next()
		case sig := <-o.Signals:
			a.interrupt(sig)
		case <-sub.Done():
			return left, errors.Join(errors.New("the hub sends no more events"), sub.Err())
		case <-ctx.Done():
			view.endLine()
			if view.watched && len(a.waiting) == 0 && errors.Is(context.Cause(ctx), term.ErrInterrupted) {
				fmt.Fprintln(view.side) // behind the ^C that the terminal shows
			}
			if cause := context.Cause(ctx); !errors.Is(cause, context.Canceled) {
				return left, cause
			}
			return left, nil
		}
	}
}
