package turn

import (
	"context"
	"errors"
	"os"
	"sync"
	"time"

	"github.com/duet-rpc/duet-rpc/client"
	"github.com/duet-rpc/duet-rpc/internal/cli/inbox"
	"github.com/duet-rpc/duet-rpc/internal/cli/tty"
	"github.com/duet-rpc/duet-rpc/internal/cli/wire"
)

// Options say how questions are answered, and what else is looked at while a
// turn goes on.
type Options struct {
	Yes, Deny bool // whatever is asked is allowed, or denied

	Signals <-chan os.Signal // each asks for the session to be interrupted
	EndNow  func()           // ends the process: a second signal has come

	SilentAfter time.Duration // when the hub is said not to answer
	WhySilent   func() string // what is said of it then

	Continued bool // the session goes on with a conversation
	Again     bool // it was attended with the same view before: what was shown is not shown again
}

// endWithin is how long a process that was told to end waits for the end of its
// session: longer than an agent is given to end.
const endWithin = 15 * time.Second

// Attend shows a session to its end, with the agent's questions put to whoever
// sits at the terminal. It returns the session as it has ended, and whether it
// was interrupted from here. c must not reconnect to another hub.
func Attend(ctx context.Context, c *client.Client, view *View, session wire.Session, o Options) (ended wire.Session, interrupted bool, err error) {
	since := view.seq
	if !o.Again {
		since = 0
		view.Begin(session)
	}
	ticks, stopped := view.work()
	defer stopped()
	if o.Continued {
		showLeftOpen(ctx, c, session.ThreadID, view)
	}
	var running sync.WaitGroup
	defer running.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()

	a := newAsker(o, view, c)
	defer a.lines()
	var stopContinued func()
	a.continued, stopContinued = tty.Continued()
	defer stopContinued()
	silence := make(chan string)
	a.silence = silence
	running.Go(func() { watchSilence(ctx, ping(c), o.SilentAfter, o.WhySilent, silence) })
	refused := make(chan error, 1)
	var overdue <-chan time.Time
	a.interrupt = func(sig os.Signal) {
		if a.interrupts {
			a.lines()
			o.EndNow()
		}
		a.interrupts, a.isToEnd = true, sig != os.Interrupt
		if a.isToEnd {
			overdue = time.After(endWithin)
		}
		view.Note("interrupting; press C-c again to end at once")
		running.Go(func() { // a second signal is looked at meanwhile
			refused <- c.Call(ctx, "interruptSession", map[string]string{"session_id": session.ID, "reason": "user_cancelled"}, nil)
		})
	}

	events := make(chan client.Event)
	sub, err := c.Subscribe(ctx, client.SubscribeOptions{Session: session.ID, Since: &since}, func(e client.Event) {
		select {
		case events <- e:
		case <-ctx.Done():
		}
	})
	if err != nil {
		return session, a.interrupts, err
	}
	defer func() { cancel(); sub.Close() }()
	for {
		select {
		case e := <-events:
			switch view.show(e) {
			case questionAsked:
				a.ask(ctx, wire.Asked(e))
			case questionResolved:
				a.resolved(wire.DataOf(e))
			case turnEnded:
				session, _, err = wire.SessionState(ctx, c, session.ID)
				return session, a.interrupts, err
			case nothingToDo:
			}
		case line := <-a.typed:
			a.answered(ctx, line)
		case <-a.continued:
			a.next()
		case <-ticks:
			view.ticked()
		case text := <-silence:
			view.Note(text)
		case sig := <-o.Signals:
			a.interrupt(sig)
		case err := <-refused:
			switch {
			case err == nil:
			case a.isToEnd && !errors.Is(err, client.Kind("session_not_running")):
				return session, a.interrupts, err // the end of the session may never come
			default:
				view.Note(wire.Refusal(err).Error())
			}
		case <-overdue:
			return session, a.interrupts, errors.New("the session was interrupted, and its end has not come; the hub may not be able to keep it")
		case <-sub.Done():
			return session, a.interrupts, errors.Join(errors.New("the hub sends no more events of this session"), sub.Err())
		case <-ctx.Done():
			return session, a.interrupts, context.Cause(ctx)
		}
	}
}

// showLeftOpen shows what earlier turns of a conversation have asked and nobody
// has answered: the turn that begins closes it, unless it asks it again.
func showLeftOpen(ctx context.Context, c *client.Client, thread string, view *View) {
	open, _, err := wire.OpenApprovals(ctx, c, "")
	if err != nil { // what follows needs the hub as well, and says so
		return
	}
	for _, a := range open {
		if !a.Stale || a.ThreadID != thread {
			continue
		}
		view.aside("? "+a.Asks(), bold)
		if a.Reopened != "" {
			view.Note(a.Reopened)
		}
		view.Note("asked before this turn; answer with: duet-rpc approvals approve " + inbox.UniqueID(a.ID, open) + ", or let this turn go on without it")
	}
}
