package turn

import (
	"context"
	"errors"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/duet-rpc/duet-rpc/client"
	"github.com/duet-rpc/duet-rpc/client/eventstream"
	"github.com/duet-rpc/duet-rpc/internal/cli/term"
	"github.com/duet-rpc/duet-rpc/internal/hubclient"
	"github.com/duet-rpc/duet-rpc/internal/protocol"
)

// InboxOptions select the questions of an inbox.
type InboxOptions struct {
	Session string // by any of its ids; "": all sessions
	Once    bool   // only the questions that are open now

	Options // each signal ends the inbox
}

// Inbox asks the open questions on the terminal, the oldest first, and then waits for new
// ones. It returns when the user leaves (left is true), on a signal (the error is
// interrupt.Err), or when the connection to the hub ends.
func Inbox(ctx context.Context, c *client.Client, view *View, o InboxOptions) (left bool, err error) {
	ctx, cancel := hubclient.WhileConnected(ctx, c)
	defer cancel()
	begin := func(ctx context.Context, a *asker, from *sources, running *sync.WaitGroup) (subject, error) {
		i := &inbox{asker: a, once: o.Once}
		return i, i.begin(ctx, o.Session, from, running)
	}
	left, err = attendInbox(ctx, c, view, o.Options, begin)
	if err == nil || errors.Is(err, ErrHungUp) || errors.Is(err, term.ErrInterrupted) {
		return left, err
	}
	return left, hubclient.OrGone(ctx, err)
}

// attendInbox attends the inbox that begin returns. c is its only daemon; nil: it has several.
func attendInbox(
	ctx context.Context, c *client.Client, view *View, o Options,
	begin func(context.Context, *asker, *sources, *sync.WaitGroup) (subject, error),
) (left bool, err error) {
	ctx, end := context.WithCancelCause(ctx)
	var running sync.WaitGroup
	defer running.Wait()
	defer end(nil)
	a := newAsker(o, view, c)
	a.isInbox = true
	a.interrupt = func(os.Signal) { end(term.ErrInterrupted) }
	defer a.release()
	from := newSources(func() { end(nil) })
	defer from.close()
	defer a.watch(ctx, &running)()
	defer view.endLine()
	of, err := begin(ctx, a, from, &running)
	if err == nil {
		err = a.loop(ctx, of, from)
	}
	return a.hasLeft, err
}

// inbox is the open questions of all sessions, or of one.
type inbox struct {
	*asker
	once       bool
	emptyNoted bool // the user knows that no question is open
	looking    int  // what has not answered yet of several projects
}

// begin subscribes to questions, and asks those that are open.
func (i *inbox) begin(ctx context.Context, session string, from *sources, running *sync.WaitGroup) error {
	if session != "" { // subscriptions need the session's own id
		of, _, err := hubclient.Turn(ctx, i.hub, session)
		if err != nil {
			return err
		}
		session = of.ID
	}
	if err := from.subscribe(ctx, i.hub, eventstream.Options{
		Session: session, Kinds: []string{protocol.KindApprovalOpened, protocol.KindApprovalClosed},
	}, running); err != nil {
		return err
	}
	open, _, err := hubclient.OpenApprovals(ctx, i.hub, session)
	for n, approval := range open {
		i.coming = len(open) - n - 1
		i.ask(ctx, approval)
	}
	return err
}

func (i *inbox) wait(context.Context) (bool, error) {
	switch {
	case i.hasLeft:
		return true, nil
	case len(i.waiting) > 0:
		i.emptyNoted = false
	case i.looking > 0:
	case i.once:
		return true, nil
	case !i.emptyNoted:
		i.emptyNoted = true
		text := "no question is open; waiting for the next, C-c ends"
		if i.skipped > 0 {
			text = "no other question is open (" + term.Count(i.skipped, "question") + " left); waiting for the next, C-c ends"
		}
		i.view.Note(text)
	}
	return false, nil
}

func (i *inbox) event(ctx context.Context, e eventstream.Event) (bool, error) {
	switch d := hubclient.DataOf(e).(type) {
	case *protocol.ApprovalClosedEvent:
		i.resolved(d)
	case *protocol.ApprovalOpenedEvent:
		if !i.once {
			i.askWhole(ctx, e, d)
		}
	}
	return false, nil
}

// A Project is a daemon whose questions [InboxOfAll] asks.
type Project struct {
	Name string // for the user
	// Hub must not reconnect by itself. InboxOfAll closes it.
	Hub *client.Client
	// Named, if set, completes the commands that a note names.
	Named func(note string) string

	done context.Context // ends with the connection
	end  context.CancelFunc
}

// InboxOfAll is [Inbox] for several projects. find looks for them until ctx ends. It calls add for each that it has
// connected, which returns a context that ends with the connection, and looked when it has looked everywhere once. A
// project that is lost delays no other one: its questions are asked again when find has connected it again.
func InboxOfAll(
	ctx context.Context, view *View, o InboxOptions, find func(ctx context.Context, add func(*Project) context.Context, looked func(without []string)),
) (left bool, err error) {
	o.SilentAfter = 0 // a silent project does not keep the user from the others
	begin := func(ctx context.Context, a *asker, from *sources, running *sync.WaitGroup) (subject, error) {
		all := &inboxOfAll{inbox: inbox{asker: a, once: o.Once, looking: 1}, from: from, running: running}
		running.Go(func() {
			find(ctx, func(p *Project) context.Context {
				p.done, p.end = hubclient.WhileConnected(ctx, p.Hub)
				context.AfterFunc(p.done, func() { p.Hub.Close() })
				from.call(ctx, func() error { all.begin(ctx, p); return nil })
				return p.done
			}, func(without []string) {
				from.call(ctx, func() error { all.looked(without); return nil })
			})
		})
		return all, nil
	}
	return attendInbox(ctx, nil, view, o.Options, begin)
}

// inboxOfAll is the open questions of several projects.
type inboxOfAll struct {
	inbox
	from     *sources
	running  *sync.WaitGroup
	projects []*Project
}

// describedWithin is how long a project may take to describe a question. Without an answer the user reads what its event had.
const describedWithin = 5 * time.Second

// at makes a project that of the next question.
func (i *inboxOfAll) at(p *Project) { i.hub, i.in, i.view.Named = p.Hub, p.Name, p.Named }

// begin asks the questions of a project.
func (i *inboxOfAll) begin(ctx context.Context, p *Project) {
	i.projects = append(i.projects, p)
	i.looking++
	i.running.Go(func() {
		sub, err := eventstream.Subscribe(p.done, p.Hub, eventstream.Options{
			Kinds: []string{protocol.KindApprovalOpened, protocol.KindApprovalClosed},
		}, func(e eventstream.Event) {
			select {
			case i.from.events <- heard{e, p.Hub}:
			case <-p.done.Done():
			}
		})
		var open []hubclient.Approval
		if err == nil {
			open, _, err = hubclient.OpenApprovals(p.done, p.Hub, "")
		}
		i.from.call(ctx, func() error { i.askAll(ctx, p, open); return nil })
		if err == nil {
			select {
			case <-p.done.Done():
			case <-sub.Done():
			}
		}
		if sub != nil {
			_ = sub.Close()
		}
		p.end()
		i.from.call(ctx, func() error { i.lost(p); return nil })
	})
}

func (i *inboxOfAll) askAll(ctx context.Context, p *Project, open []hubclient.Approval) {
	ctx, cancel := context.WithTimeout(ctx, describedWithin)
	defer cancel()
	i.looking--
	i.at(p)
	for n, approval := range open {
		i.coming = len(open) - n - 1
		i.ask(ctx, approval)
	}
	i.sort()
}

// sort has the oldest questions asked first, after the one that the user is answering.
func (i *inboxOfAll) sort() {
	if len(i.waiting) > 1 {
		slices.SortStableFunc(i.waiting[1:], func(a, b asked) int { return a.CreatedAt.Compare(b.CreatedAt) })
	}
}

// lost takes a project from the inbox. Its questions stay open.
func (i *inboxOfAll) lost(p *Project) {
	i.projects = slices.DeleteFunc(i.projects, func(other *Project) bool { return other == p })
	note := ""
	if slices.ContainsFunc(i.waiting, func(q asked) bool { return q.hub == p.Hub }) {
		note = p.Name + " cannot be reached; its questions stay open, and are asked again"
	}
	i.at(p)
	i.drop(p.Hub, note)
}

// looked says that the projects have been looked for once; the questions of those in without are unknown.
func (i *inboxOfAll) looked(without []string) {
	i.looking--
	for _, text := range without {
		i.view.remark(term.Line(text))
	}
}

func (i *inboxOfAll) event(ctx context.Context, e eventstream.Event) (bool, error) {
	n := slices.IndexFunc(i.projects, func(p *Project) bool { return p.Hub == i.hub })
	if n < 0 { // it is the last of a connection that is gone
		return false, nil
	}
	i.at(i.projects[n])
	ctx, cancel := context.WithTimeout(ctx, describedWithin)
	defer cancel()
	isOver, err := i.inbox.event(ctx, e)
	i.sort()
	return isOver, err
}
