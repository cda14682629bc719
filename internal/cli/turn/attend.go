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
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/hubclient"
	"github.com/duet-rpc/duet-rpc/internal/protocol"
)

// Options say how questions are answered during a turn, and how signals and a silent hub are
// handled.
type Options struct {
	Yes, Deny bool // allow or deny every question

	Signals <-chan os.Signal // each requests to interrupt the turn
	EndNow  func()           // ends the process after a second signal

	SilentAfter time.Duration // after how long the user is informed that the hub does not answer
	WhySilent   func() string // explains why

	// SignIn signs in to an agent in this terminal. If it is nil, signing in is not offered.
	SignIn func(ctx context.Context, agent, method string) error
	// KeptBack returns the names of this process's variables with keys that the agent does not get.
	// It may be nil.
	KeptBack func(agent string) []string
	// Repeat starts a turn that continues an ended one with the same prompt.
	Repeat func(ctx context.Context, after protocol.Turn) (protocol.Turn, error)

	Again bool // the turn was attended with the same view before; earlier output is not repeated
}

// ErrHungUp says that the terminal was closed while the turn continues.
var ErrHungUp = errors.New("the terminal was closed; the session continues in the project's daemon")

// endWithin is how long a process that received SIGTERM waits for the end of its turn. It
// is longer than an agent has to end.
const endWithin = 15 * time.Second

// Attend shows a turn to its end and asks the agent's questions on the terminal. Then it
// shows the sessions that the user starts from here: prompts that send the agent a comment,
// and the same prompt after signing in. It returns the last turn and whether the user
// interrupted it here. c must not reconnect to another hub.
func Attend(
	ctx context.Context, c *client.Client, view *View, session protocol.Turn, o Options,
) (ended protocol.Turn, interrupted bool, err error) {
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
	defer a.release()
	defer a.watch(ctx, &running)()
	for {
		if session, err = a.attend(ctx, session, since, &running); err != nil {
			return session, a.interrupts, err
		}
		next, err := a.follow(ctx, session)
		if next == nil || err != nil {
			return session, a.interrupts, err
		}
		view.Spent(session)
		session, since = *next, 0
		view.Begin(session)
	}
}

// watch starts to watch C-z and, if SilentAfter is set, whether the hub answers, until ctx ends and stop is
// called.
func (a *asker) watch(ctx context.Context, running *sync.WaitGroup) (stop func()) {
	continued, notContinued := term.Continued()
	stops, notStopped := term.Stopped()
	a.continued, a.stops = continued, stops
	if a.SilentAfter > 0 {
		silence := make(chan bool)
		a.silence = silence
		running.Go(func() { watchSilence(ctx, ping(a.hub), a.SilentAfter, silence) })
	}
	return func() { notContinued(); notStopped() }
}

// isHungUp reports whether the terminal was closed. Its ioctls fail then, but not after C-d.
func (a *asker) isHungUp() bool { return a.terminal != nil && !term.IsTerminal(a.terminal) }

// attend shows a turn from an event on to its end.
func (a *asker) attend(ctx context.Context, session protocol.Turn, since int64, running *sync.WaitGroup) (protocol.Turn, error) {
	ctx, cancel := context.WithCancel(ctx)
	from := newSources(cancel)
	defer from.close()
	ticks, stopped := a.view.work()
	defer stopped()
	from.ticks = ticks
	a.interrupt = func(sig os.Signal) { // queued turns first, because they would start otherwise
		turns := append(slices.Clone(a.commentTurns), session.ID)
		a.interruptTurns(ctx, sig, turns, slices.Repeat([]*client.Client{a.hub}, len(turns)), from, running)
	}
	if err := from.subscribe(ctx, a.hub, eventstream.Options{Session: session.ID, Since: &since}, running); err != nil {
		return session, err
	}
	if since > 0 { // the events of its questions may have come before
		if err := a.askOpen(ctx, session); err != nil {
			return session, err
		}
	}
	if since > 0 && session.Gates != nil && session.State == domain.Completed && !session.AreChecked() { // another hub has run the gates
		return session, nil
	}
	// A full disk ends a turn before the event can be stored, and perhaps before the
	// subscription began. Then no event arrives.
	if now, _, err := hubclient.Turn(ctx, a.hub, session.ID); err == nil && now.ErrorCode == domain.CodeStoreFull {
		return now, nil
	}
	of := &oneTurn{a, session, running}
	err := a.loop(ctx, of, from)
	return of.session, err
}

// askOpen asks the open questions of a turn whose agent waits for them.
func (a *asker) askOpen(ctx context.Context, session protocol.Turn) error {
	open, _, err := hubclient.OpenApprovals(ctx, a.hub, session.ID)
	if err != nil {
		return err
	}
	for _, q := range open {
		if !q.Stale && !a.seen[q.ApprovalID] {
			a.ask(ctx, q)
		}
	}
	return nil
}

// ShowLeftOpen shows the unanswered questions of earlier turns. Call it before a turn begins,
// because that closes them.
func ShowLeftOpen(ctx context.Context, c *client.Client, session string, view *View) {
	of, _, err := hubclient.Turn(ctx, c, session)
	if err != nil { // the caller needs the hub as well and reports the error
		return
	}
	open, _ := leftOpen(ctx, c, of)
	for _, a := range open {
		view.aside("? "+term.Line(Asks(a)), bold)
		if a.Reopened != "" {
			view.Note(a.Reopened)
		}
		view.Note("this turn closes that open question: the agent asks again if it still needs it")
	}
}

// leftOpen returns the open questions of a session whose agent is gone.
func leftOpen(ctx context.Context, c *client.Client, of protocol.Turn) ([]hubclient.Approval, error) {
	open, _, err := hubclient.OpenApprovals(ctx, c, "")
	return slices.DeleteFunc(open, func(a hubclient.Approval) bool { return !a.Stale || a.SessionUUID != of.SessionUUID }), err
}

// Watch shows a turn to its end, and then the turns that continue the work after failed
// gates. For each question it shows the command that answers it. It returns the id of the last
// turn. The turns continue if ctx ends first.
func Watch(ctx context.Context, c *client.Client, view *View, session string) (last string, err error) {
	for {
		if err := watch(ctx, c, view, session); err != nil {
			return session, err
		}
		ended, _, err := hubclient.Turn(ctx, c, session)
		if err != nil {
			return session, err
		}
		view.Spent(ended)
		switch next := ended.GoesOnIn(); {
		case ended.AreChecked(): // again, by another hub
		case next == "":
			return session, nil
		default:
			session = next
		}
	}
}

// watch shows one turn to its end.
func watch(ctx context.Context, c *client.Client, view *View, session string) error {
	view.session, _, _ = hubclient.Turn(ctx, c, session) // without it, paths in diffs stay absolute
	view.session.ID = session
	ended := make(chan struct{})
	over, asked := false, make(map[string]bool) // only the handler uses them
	sub, err := eventstream.Subscribe(ctx, c, eventstream.Options{Session: session, Since: new(int64)}, func(e eventstream.Event) {
		if over {
			return
		}
		event, isOver := view.show(e)
		switch d := event.(type) {
		case *protocol.ApprovalOpenedEvent:
			if !asked[d.ApprovalID] {
				asked[d.ApprovalID] = true
				view.showQuestion(wholeApproval(ctx, c, hubclient.ApprovalOf(e, d)))
			}
		case *protocol.ApprovalClosedEvent:
			view.refusal(d)
		}
		if isOver {
			over = true
			view.endLine()
			close(ended)
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
		return errors.Join(errors.New("the daemon sends no more events of this turn"), sub.Err())
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// showQuestion shows a question that another command can answer.
func (v *View) showQuestion(a hubclient.Approval) {
	id := ShortID(a.ApprovalID)
	lines, hidden := Sheet(a, v.session.WorkingDir).Excerpt(": duet-rpc approvals show " + id + " shows all")
	if !hidden {
		v.propose(fileDiffs(a, v.session.WorkingDir))
	}
	v.question(a, lines)
	v.Note("answer with: " + howToAnswer(a, id))
}

// IsOrphan reports whether a turn was interrupted because its hub ended.
func IsOrphan(s protocol.Turn) bool {
	return s.State == domain.Interrupted && (s.ErrorCode == "SHUTDOWN" || s.ErrorCode == "ORPHANED")
}

// GoOnPrompt returns a prompt that asks an agent to continue a request that the end of its hub
// interrupted.
func GoOnPrompt(request string) string {
	return domain.GoOnPrompt("You were interrupted, because the program that ran you ended.", request)
}

// ping returns a function that waits for any response of a hub; an error counts as one. If the
// connection is lost, the context ends.
func ping(c *client.Client) func(context.Context) {
	return func(ctx context.Context) { _ = c.Call(ctx, "ping", nil, nil) }
}

// watchSilence pings the hub repeatedly. It sends true when the hub does not answer in time
// and false when it answers again. It returns when ctx ends.
func watchSilence(ctx context.Context, ping func(context.Context), within time.Duration, silent chan<- bool) {
	report := func(is bool) {
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
		if !ready(ctx, answered, within) && !ready(ctx, answered, within/4) { // twice, because this process may have been stopped
			report(true)
			<-answered
			report(false)
		}
		<-answered
		select {
		case <-time.After(within):
		case <-ctx.Done():
		}
	}
}

// hubSilent calls note with the news that the hub does not answer, or answers again.
func (a *asker) hubSilent(silent bool, note func(string)) {
	if !silent {
		a.hubHeard(note)
		return
	}
	a.isHubSilent = true
	note(a.WhySilent())
}

// hubHeard calls note with the news that a silent hub answers again. It runs before anything
// else that the hub sends is shown, because the turn may end with that.
func (a *asker) hubHeard(note func(string)) {
	if a.isHubSilent {
		a.isHubSilent = false
		note("the daemon answers again")
	}
}

// ready waits for a channel, and reports whether it was ready within the time and before ctx
// ended.
func ready(ctx context.Context, what <-chan struct{}, within time.Duration) bool {
	select {
	case <-what:
		return true
	case <-ctx.Done():
		return true
	case <-time.After(within):
		return false
	}
}
