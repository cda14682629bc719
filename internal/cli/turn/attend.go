package turn

import (
	"context"
	"errors"
	"os"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/duet-rpc/duet-rpc/client"
	"github.com/duet-rpc/duet-rpc/internal/cli/term"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/protocol"
	"github.com/duet-rpc/duet-rpc/internal/wire"
)

// Options say how questions are answered, and what else is looked at while a
// turn goes on.
type Options struct {
	Yes, Deny bool // whatever is asked is allowed, or denied

	Signals <-chan os.Signal // each asks for the session to be interrupted
	EndNow  func()           // ends the process: a second signal has come

	SilentAfter time.Duration // when the hub is said not to answer
	WhySilent   func() string // what is said of it then

	// SignIn signs in to an agent, in this terminal. Nil: that is not offered.
	SignIn func(ctx context.Context, agent, method string) error
	// Repeat begins a session that goes on after one that has ended, with the same
	// prompt.
	Repeat func(ctx context.Context, after protocol.Session) (protocol.Session, error)

	Again bool // it was attended with the same view before: what was shown is not shown again
}

// ErrHungUp says that the terminal was closed. The session goes on without it.
var ErrHungUp = errors.New("the terminal was closed; the session goes on in the project's daemon")

// endWithin is how long a process that was told to end waits for the end of its
// session: longer than an agent is given to end.
const endWithin = 15 * time.Second

// Attend shows a session to its end, with the agent's questions put to whoever
// sits at the terminal, and after it what that person begins from here: a prompt
// with which the agent is told something, and the same prompt again after signing
// in. It returns the last session as it has ended, and whether it was interrupted
// from here. c must not reconnect to another hub.
func Attend(ctx context.Context, c *client.Client, view *View, session protocol.Session, o Options) (ended protocol.Session, interrupted bool, err error) {
	since := view.seq
	if !o.Again {
		since = 0
		view.Begin(session)
	}
	var running sync.WaitGroup
	defer running.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()

	a := newAsker(o, view, c)
	defer a.lines()
	var stopContinued func()
	a.continued, stopContinued = term.Continued()
	defer stopContinued()
	silence := make(chan bool)
	a.silence = silence
	running.Go(func() { watchSilence(ctx, ping(c), o.SilentAfter, silence) })
	for {
		if session, err = a.attend(ctx, session, since, &running); err != nil {
			return session, a.interrupts, err
		}
		next, err := a.follow(ctx, session)
		if next == nil || err != nil {
			return session, a.interrupts, err
		}
		session, since = *next, 0
		view.Begin(session)
	}
}

// isHungUp reports whether the terminal was closed, as its ioctls tell then: after C-d they do not.
func (a *asker) isHungUp() bool { return a.terminal != nil && !term.IsTerminal(a.terminal) }

// attend shows what has happened in a session since an event, to its end.
func (a *asker) attend(ctx context.Context, session protocol.Session, since int64, running *sync.WaitGroup) (protocol.Session, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ticks, stopped := a.view.work()
	defer stopped()
	refused := make(chan error, 1)
	var overdue <-chan time.Time
	a.interrupt = func(sig os.Signal) {
		if a.interrupts {
			a.lines()
			a.EndNow()
		}
		a.interrupts, a.isToEnd = true, sig != os.Interrupt
		if a.isToEnd {
			overdue = time.After(endWithin)
		}
		a.view.Note("interrupting; press C-c again to end at once")
		told := slices.Clone(a.told)
		running.Go(func() { // a second signal is looked at meanwhile
			for _, id := range append(told, session.ID) { // what waits first, else it would begin
				if err := a.hub.Call(ctx, "interruptSession", map[string]string{"session_id": id, "reason": "user_cancelled"}, nil); err != nil || id == session.ID {
					refused <- err
					return
				}
			}
		})
	}

	events := make(chan client.Event)
	sub, err := a.hub.Subscribe(ctx, client.SubscribeOptions{Session: session.ID, Since: &since}, func(e client.Event) {
		select {
		case events <- e:
		case <-ctx.Done():
		}
	})
	if err != nil {
		return session, err
	}
	defer func() { cancel(); sub.Close() }()
	if since > 0 && session.Gates != nil && session.State == wire.Completed && !session.AreChecked() { // another hub has checked them
		return session, nil
	}
	// That a full disk has ended it is announced before it can be stored, perhaps before the
	// subscription began: then no event comes.
	if now, _, err := wire.SessionState(ctx, a.hub, session.ID); err == nil && now.ErrorCode == domain.CodeStoreFull {
		return now, nil
	}
	for {
		a.promptAgain()
		select {
		case e := <-events:
			a.pause = nil
			a.hubHeard(a.view.remark)
			switch a.view.show(e) {
			case questionAsked:
				a.ask(ctx, wire.ApprovalOf(e))
			case questionResolved:
				a.resolved(wire.DataOf(e))
			case keyAsked:
				a.giveKey(ctx, wire.DataOf(e), running)
			case turnEnded:
				if session, _, err = wire.SessionState(ctx, a.hub, session.ID); err != nil || !a.view.gates.awaitsMore(session) {
					return session, err
				}
			case nothingToDo:
			}
		case line := <-a.typed:
			if line.err != nil && a.isHungUp() {
				return session, ErrHungUp
			}
			a.answered(ctx, line)
		case <-a.continued:
			a.next()
		case <-ticks:
			a.view.ticked()
		case <-a.pause:
			a.paused()
		case <-a.view.held.due:
			a.view.heldLong()
		case silent := <-a.silence:
			a.hubSilent(silent, a.view.remark)
		case sig := <-a.Signals:
			if sig == syscall.SIGHUP {
				return session, ErrHungUp
			}
			a.interrupt(sig)
		case err := <-refused:
			switch {
			case err == nil:
			case a.isToEnd && !errors.Is(err, client.Kind("session_not_running")):
				return session, err // the end of the session may never come
			default:
				a.view.Note(InWords(err).Error())
			}
		case <-overdue:
			return session, errors.New("the session was interrupted, and its end has not come; the hub may not be able to keep it")
		case <-sub.Done():
			return session, errors.Join(errors.New("the hub sends no more events of this session"), sub.Err())
		case <-ctx.Done():
			return session, context.Cause(ctx)
		}
	}
}

// ShowLeftOpen shows what earlier turns of a conversation have asked and nobody has
// answered. It comes before a turn is begun, which closes it.
func ShowLeftOpen(ctx context.Context, c *client.Client, session string, view *View) {
	of, _, err := wire.SessionState(ctx, c, session)
	if err != nil { // what follows needs the hub as well, and says so
		return
	}
	open, _, err := wire.OpenApprovals(ctx, c, "")
	if err != nil {
		return
	}
	for _, a := range open {
		if !a.Stale || a.ThreadID != of.ThreadID {
			continue
		}
		view.aside("? "+a.Asks(), bold)
		if a.Reopened != "" {
			view.Note(a.Reopened)
		}
		view.Note("asked before, and closed by this turn: the agent asks again if it still wants that")
	}
}

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
			if a := wire.ApprovalOf(e); !asked[a.ApprovalID] {
				asked[a.ApprovalID] = true
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
	id := ShortID(a.ApprovalID)
	lines, _ := Sheet(a, v.session.WorkingDir).Excerpt(": duet-rpc approvals show " + id + " shows all")
	v.lines(lines)
	v.Note("answer with: " + howToAnswer(a, id))
}

// IsOrphan reports whether a session was interrupted because its hub ended.
func IsOrphan(s protocol.Session) bool {
	return s.Status == wire.Interrupted && (s.ErrorCode == "SHUTDOWN" || s.ErrorCode == "ORPHANED")
}

// GoOnPrompt asks an agent to go on with a request that the end of its hub interrupted.
func GoOnPrompt(request string) string {
	return domain.GoOnPrompt("You were interrupted, because the program that ran you ended.", request)
}

// ping asks a hub for a sign of life. An error is one too; where the connection
// is lost the context ends.
func ping(c *client.Client) func(context.Context) {
	return func(ctx context.Context) { _ = c.Call(ctx, "ping", nil, nil) }
}

// watchSilence pings the hub again and again. It sends true when the hub gives no
// answer within a time, and false when it answers again. It returns when ctx ends.
func watchSilence(ctx context.Context, ping func(context.Context), within time.Duration, silent chan<- bool) {
	tell := func(is bool) {
		select {
		case silent <- is:
		case <-ctx.Done():
		}
	}
	for ctx.Err() == nil {
		answered := make(chan struct{})
		go func() {
			defer close(answered)
			ping(ctx)
		}()
		if !comes(ctx, answered, within) && !comes(ctx, answered, within/4) { // twice: we may have been stopped ourselves
			tell(true)
			<-answered
			tell(false)
		}
		<-answered
		select {
		case <-time.After(within):
		case <-ctx.Done():
		}
	}
}

// hubSilent says, with note, that the hub does not answer, or that it answers again.
func (a *asker) hubSilent(silent bool, note func(string)) {
	if !silent {
		a.hubHeard(note)
		return
	}
	a.isHubSilent = true
	note(a.WhySilent())
}

// hubHeard says, with note, that a hub that did not answer answers again. It comes before
// anything else that the hub sends: the session may end with that.
func (a *asker) hubHeard(note func(string)) {
	if a.isHubSilent {
		a.isHubSilent = false
		note("the hub answers again")
	}
}

// comes waits for something, or for the end of ctx, and reports whether it was
// in time.
func comes(ctx context.Context, what <-chan struct{}, within time.Duration) bool {
	select {
	case <-what:
		return true
	case <-ctx.Done():
		return true
	case <-time.After(within):
		return false
	}
}
