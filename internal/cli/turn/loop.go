package turn

import (
	"context"
	"errors"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/duet-rpc/duet-rpc/client"
	"github.com/duet-rpc/duet-rpc/client/eventstream"
	"github.com/duet-rpc/duet-rpc/internal/cli/term"
	"github.com/duet-rpc/duet-rpc/internal/hubclient"
	"github.com/duet-rpc/duet-rpc/internal/protocol"
)

// subject is what the loop attends: one turn, several turns, the open questions, or a session between
// two turns.
type subject interface {
	// wait prepares the screen before the loop waits. isOver ends the loop.
	wait(ctx context.Context) (isOver bool, err error)
	// event shows an event of the hub, and acts on it. isOver ends the loop.
	event(ctx context.Context, e eventstream.Event) (isOver bool, err error)
}

// sources are what one run of the loop waits for, besides the user, signals and a silent hub. A nil channel
// never reports.
type sources struct {
	events  chan heard
	calls   chan func() error // for the loop to run; an error ends it
	broken  chan broke        // a subscription has ended
	refused chan error        // the response of turn.interrupt; nil: it was accepted
	overdue <-chan time.Time  // an interrupted turn has not ended in time
	ticks   <-chan time.Time  // of the status line
	news    <-chan struct{}   // talk.news has an event
	subs    []*eventstream.Subscription
	cancel  context.CancelFunc // ends the handlers of events
}

// heard is an event, and the daemon that sent it.
type heard struct {
	eventstream.Event
	hub *client.Client
}

func newSources(cancel context.CancelFunc) *sources {
	return &sources{
		events: make(chan heard), calls: make(chan func() error), broken: make(chan broke, 1), refused: make(chan error, 1), cancel: cancel,
	}
}

// broke is a connection whose subscription has ended, and why.
type broke struct {
	hub *client.Client
	err error
}

// call has the loop run a function, unless ctx ends first.
func (s *sources) call(ctx context.Context, do func() error) {
	select {
	case s.calls <- do:
	case <-ctx.Done():
	}
}

// subscribe sends events to the loop.
func (s *sources) subscribe(ctx context.Context, c *client.Client, o eventstream.Options, running *sync.WaitGroup) error {
	sub, err := eventstream.Subscribe(ctx, c, o, func(e eventstream.Event) {
		select {
		case s.events <- heard{e, c}:
		case <-ctx.Done():
		}
	})
	if err != nil {
		return err
	}
	s.subs = append(s.subs, sub)
	running.Go(func() {
		<-sub.Done()
		select {
		case s.broken <- broke{c, sub.Err()}:
		default: // another subscription has ended before
		}
	})
	return nil
}

// close ends the subscriptions.
func (s *sources) close() {
	s.cancel()
	for _, sub := range s.subs {
		_ = sub.Close()
	}
}

// loop attends something to its end: it shows events, gives keys to the question or the prompt, and handles
// signals.
func (a *asker) loop(ctx context.Context, of subject, from *sources) error {
	for {
		if a.isClosed {
			return ErrHungUp
		}
		if isOver, err := of.wait(ctx); isOver || err != nil {
			return err
		}
		if !a.isStopped {
			a.promptAgain()
			a.talk.draw(a)
			a.rest()
		}
		if isOver, err := a.happens(ctx, of, from); isOver || err != nil {
			return err
		}
	}
}

// happens waits for one thing, and handles it.
func (a *asker) happens(ctx context.Context, of subject, from *sources) (isOver bool, err error) {
	select {
	case e := <-from.events:
		a.pause = nil
		a.hubHeard(a.view.remark)
		a.hub = e.hub
		return of.event(ctx, e.Event)
	case do := <-from.calls:
		return false, do()
	case <-from.news:
		return of.event(ctx, a.talk.news.take())
	case input := <-a.typed:
		return false, a.input(ctx, input)
	case sig := <-a.Signals:
		return false, a.signal(sig)
	case err := <-from.refused:
		return false, a.interruptRefused(err)
	case <-from.overdue:
		return false, errors.New("the turn was interrupted, and the daemon has not reported its end; it may be unable to store it")
	case b := <-from.broken:
		if a.gone != nil {
			return false, a.gone(ctx, b.hub)
		}
		return false, errors.Join(errors.New("the daemon sends no more events"), b.err)
	case <-ctx.Done():
		return false, context.Cause(ctx)
	case <-a.stops:
		a.suspend()
	case <-a.continued:
		a.goesOn()
	case <-a.talk.resized():
		a.view.hide()
	case <-a.talk.reported():
		a.talk.Reported(ctx, a.hub)
	case silent := <-a.silence:
		a.hubSilent(silent, a.view.remark)
	case <-from.ticks:
		a.view.ticked()
	case <-a.settle:
	case <-a.pause:
		a.paused()
	case <-a.view.remarks.due:
		a.view.releaseLate()
	}
	return false, nil
}

// rest takes the keys away from the agent's text, unless they are the next prompt or an answer.
func (a *asker) rest() {
	switch {
	case a.talk != nil || a.asks():
	case a.view.words != nil:
		a.hide()
	default: // the agent's text is not on the terminal
		a.release()
	}
}

// input gives what the user has typed to the question, or to the prompt of the session.
func (a *asker) input(ctx context.Context, input term.Typed) error {
	switch {
	case input.Err != nil && a.isHungUp():
		return ErrHungUp
	case a.talk != nil && (len(a.waiting) == 0 || !a.asks()):
		return a.talk.received(ctx, a, a.decode(input.Keys), input.Err)
	}
	line, ok := a.received(input)
	for ok {
		if line.err != nil && a.talk != nil {
			return ErrLeave // the question stays open
		}
		isReason := a.expected == aReason
		a.talk.answered(a, a.answered(ctx, line), isReason)
		line, ok = a.receivedAhead()
	}
	return nil
}

// signal handles a signal. Between two turns of a session there is nothing to interrupt.
func (a *asker) signal(sig os.Signal) error {
	switch {
	case sig == syscall.SIGHUP, sig != os.Interrupt && a.talk.isIdle():
		return ErrHungUp
	case a.talk.isIdle():
		a.talk.cleared(a)
	default:
		a.interrupt(sig)
	}
	return nil
}

// meanwhile handles a signal while something else than the loop waits. The loop ends after a SIGHUP.
func (a *asker) meanwhile(sig os.Signal) {
	if sig == syscall.SIGHUP {
		a.isClosed = true
		return
	}
	a.interrupt(sig)
}

// interruptTurns interrupts turns after the first signal, and ends the process after the second. A session
// goes on after C-c. Each turn is interrupted by the hub at the same place of hubs.
func (a *asker) interruptTurns(
	ctx context.Context, sig os.Signal, turns []string, hubs []*client.Client, from *sources, running *sync.WaitGroup,
) {
	switch {
	case !a.interrupts:
	case a.talk != nil && sig == os.Interrupt:
		a.view.Note("the agent has been asked to stop; C-d leaves the session")
		return
	default:
		if !a.isInbox {
			a.view.Note("left before its end: duet-rpc session show " + a.view.session.Name + " shows its time, tokens and cost")
		}
		a.release()
		a.EndNow()
	}
	a.interrupts, a.isToEnd = true, sig != os.Interrupt
	a.meant = ""
	a.giveUp()
	if a.isToEnd {
		from.overdue = time.After(endWithin)
	}
	switch {
	case a.talk != nil:
		a.view.Note("interrupting")
	case len(turns) > 1 && a.isInbox:
		a.view.Note("interrupting all; press C-c again to end at once")
	default:
		a.view.Note("interrupting; press C-c again to end at once")
	}
	running.Go(func() { // so that a second signal is handled meanwhile
		var refused error
		for i, id := range turns {
			params := protocol.InterruptTurnParams{Turn: protocol.Ref(id), Reason: "user_cancelled"}
			if err := hubs[i].Call(ctx, "turn.interrupt", params, nil); err != nil {
				refused = err
			}
		}
		select {
		case from.refused <- refused:
		case <-ctx.Done():
		}
	})
}

// interruptRefused tells the user why a turn could not be interrupted. It returns the error if this process
// must end: the event of the turn's end may never arrive.
func (a *asker) interruptRefused(err error) error {
	switch {
	case err == nil:
	case a.isToEnd && !errors.Is(err, client.Kind("not_running")):
		return err
	default:
		a.view.Note(InDialogue(err).Error())
	}
	return nil
}

// suspend gives the terminal to the shell after C-z, and stops this process.
func (a *asker) suspend() {
	a.view.endLine()
	a.release()
	a.isStopped = true
	term.Stop()
}

// goesOn takes the terminal back from the shell after this process was stopped.
func (a *asker) goesOn() {
	a.isStopped = false
	if a.view.region != nil {
		a.view.region.Forget()
	}
	a.view.endLine()
	a.keyboard.continued()
	a.next()
}

// lend waits until the program that has the terminal has ended. C-c goes to that program, and calls
// interrupted; a signal that ends this process calls stop.
func (a *asker) lend(done <-chan struct{}, stop, interrupted func()) {
	for {
		select {
		case <-done:
			return
		case <-a.stops: // the program has stopped as well
			term.Stop()
		case <-a.continued: // the program draws its screen again
		case sig := <-a.Signals:
			if sig == os.Interrupt {
				interrupted()
				continue
			}
			stop()
			a.meanwhile(sig)
		}
	}
}

// oneTurn shows a turn to its end, and gives its session the keys.
type oneTurn struct {
	*asker
	session protocol.Turn
	running *sync.WaitGroup
}

func (t *oneTurn) wait(ctx context.Context) (bool, error) {
	return false, t.talk.typedEarly(ctx, t.asker)
}

func (t *oneTurn) event(ctx context.Context, e eventstream.Event) (bool, error) {
	event, isOver := t.view.show(e)
	switch d := event.(type) {
	case *protocol.ApprovalOpenedEvent:
		t.ask(ctx, hubclient.ApprovalOf(e, d))
	case *protocol.ApprovalClosedEvent:
		t.resolved(d)
	case *protocol.SecretEvent:
		t.giveKey(ctx, d, t.running)
	}
	if !isOver {
		return false, nil
	}
	now, _, err := hubclient.Turn(ctx, t.hub, t.session.ID)
	if err != nil {
		return true, err
	}
	t.session = now
	return !t.view.gates.awaitsMore(now), nil
}
