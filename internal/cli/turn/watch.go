package turn

import (
	"context"
	"errors"

	"github.com/duet-rpc/duet-rpc/client"
	"github.com/duet-rpc/duet-rpc/internal/wire"
)

// Watch shows a session from its beginning to its end, with those in which work goes on
// whose gates fail, and says of each question how it can be answered elsewhere. It returns
// the last session. They go on if ctx ends before.
func Watch(ctx context.Context, c *client.Client, view *View, session string) (last string, err error) {
	for {
		if err := watch(ctx, c, view, session); err != nil {
			return session, err
		}
		ended, _, err := wire.SessionState(ctx, c, session)
		if err != nil {
			return session, err
		}
		switch next := ended.GoesOnIn(); {
		case ended.AreChecked(): // again, by another hub
		case next == "":
			return session, nil
		default:
			session = next
		}
	}
}

// watch shows one session to its end.
func watch(ctx context.Context, c *client.Client, view *View, session string) error {
	view.session, _, _ = wire.SessionState(ctx, c, session) // else names in diffs stay as they are
	view.session.ID = session
	ended := make(chan struct{})
	over, asked := false, make(map[string]bool) // for the handler alone
	sub, err := c.Subscribe(ctx, client.SubscribeOptions{Session: session, Since: new(int64)}, func(e client.Event) {
		if over {
			return
		}
		switch view.show(e) {
		case questionAsked:
			if a := wire.ApprovalOf(e); !asked[a.ID] {
				asked[a.ID] = true
				view.showQuestion(wholeApproval(ctx, c, a))
			}
		case turnEnded:
			over = true
			view.endLine()
			close(ended)
		case questionResolved:
			view.refusal(wire.DataOf(e))
		case nothingToDo:
		}
	})
	if err != nil {
		return err
	}
	defer sub.Close()
	select {
	case <-ended:
		return nil
	case <-sub.Done():
		return errors.Join(errors.New("the hub sends no more events of this session"), sub.Err())
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// showQuestion shows a question that is answered by another command.
func (v *View) showQuestion(a wire.Approval) {
	id := ShortID(a.ID)
	lines, _ := Sheet(a, v.session.WorkingDir).Excerpt(": duet-rpc approvals show " + id + " shows all")
	v.lines(lines)
	v.Note("answer with: " + howToAnswer(a, id))
}
