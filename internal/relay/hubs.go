package relay

import (
	"context"
	"errors"
	"time"

	"github.com/duet-rpc/duet-rpc/frame"
	"github.com/duet-rpc/duet-rpc/server"
)

type wantedKey struct{}

// Wanted reports, for the context of Options.Connect, whether a message of the editor waits for
// the hub.
func Wanted(ctx context.Context) bool {
	wanted, _ := ctx.Value(wantedKey{}).(bool)
	return wanted
}

// serveHubs connects to one hub after the other until the relay ends.
func (r *Relay) serveHubs() {
	pause := firstPause
	for {
		t := r.connect(&pause)
		if t == nil {
			return
		}
		connected := time.Now()
		hub := newLink(t)
		hub.gone = make(chan struct{})
		broken := make(chan struct{})
		hub.failed = func() { close(broken) }
		if !r.open(hub) {
			return
		}
		r.jobs.Go(func() { r.closeBroken(hub, broken) })
		r.readHub(hub)
		t.Close()
		close(hub.gone)
		if !r.hubGone(hub) {
			r.endAnswered()
			return
		}
		if time.Since(connected) >= lastPause {
			pause = firstPause
		} else { // the restored state may be what made it crash
			r.sleep(&pause)
		}
	}
}

// closeBroken closes a connection to a hub after a failed write. It first reads the rest of the
// hub's output, for a second at most.
func (r *Relay) closeBroken(hub *link, broken <-chan struct{}) {
	select {
	case <-broken:
		r.pause(hub.gone, time.Second)
		hub.t.Close()
	case <-hub.gone:
	}
}

// connect calls Options.Connect until it succeeds. It returns nil when the
// relay has ended.
func (r *Relay) connect(pause *time.Duration) server.Transport {
	r.logState(stateConnecting)
	for r.ctx.Err() == nil {
		r.mu.Lock()
		wanted := len(r.waiting) > 0
		r.mu.Unlock()
		t, err := r.opts.Connect(context.WithValue(r.ctx, wantedKey{}, wanted))
		var unavailable *UnavailableError
		switch {
		case r.ctx.Err() != nil:
			if err == nil {
				t.Close()
			}
			return nil
		case err == nil:
			r.NoteProblem("")
			return t
		case errors.As(err, &unavailable), errors.Is(err, ErrDormant) && !wanted:
			r.NoteProblem("")
			if unavailable != nil && r.opts.Broken != "" {
				r.noticeUnavailable(unavailable.Error())
			}
			if unavailable != nil && wanted {
				r.refuseWaiting()
			}
			r.logState(stateDormant)
			if r.awaitDemand(unavailable != nil) {
				*pause = firstPause
			} else {
				r.sleep(pause) // or it would retry endlessly without a change
			}
			r.logState(stateConnecting)
			continue
		}
		r.opts.Logger.Debug("no hub yet", "err", err, "pause", *pause)
		r.sleep(pause)
	}
	return nil
}

// noticeUnavailable notifies an editor that has lost its hub why there is no other one.
func (r *Relay) noticeUnavailable(why string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.noticed != "" {
		r.noticeSilence(why)
	}
}

// NoteProblem records why Connect has found no hub so far; "": unknown. It appears in the error
// of a request that has waited too long. Connect may call it.
func (r *Relay) NoteProblem(why string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if why != "" && r.problem == "" {
		r.opts.Logger.Warn(why)
	}
	r.problem = why
}

// mendedAfter is the retry interval for an unavailable hub while the editor has a subscription:
// the user may have fixed the cause.
const mendedAfter = 5 * time.Second

// awaitDemand waits until a message of the editor waits for a hub, which it reports, until another
// process may have started a hub, or until the relay ends. With broken it waits no longer than
// mendedAfter if the editor has a subscription.
func (r *Relay) awaitDemand(broken bool) (wanted bool) {
	ctx, cancel := context.WithCancel(r.ctx)
	defer cancel()
	r.mu.Lock()
	if broken && len(r.subs.open) > 0 {
		defer time.AfterFunc(mendedAfter, cancel).Stop()
	}
	r.mu.Unlock()
	if r.opts.Arrival != nil {
		r.jobs.Go(func() {
			defer cancel()
			r.opts.Arrival(ctx)
		})
	}
	return r.await(ctx, func() bool { return len(r.waiting) > 0 })
}

// sleep waits for a pause, and doubles it.
func (r *Relay) sleep(pause *time.Duration) {
	r.pause(nil, *pause)
	*pause = min(2**pause, lastPause)
}

// open begins to use a hub: it restores the editor's state there, and then sends the waiting
// messages. It reports false if the relay has ended.
func (r *Relay) open(hub *link) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ctx.Err() != nil {
		hub.t.Close()
		return false
	}
	r.opening = hub
	restoration := r.restoration()
	if r.opts.Silence > 0 {
		r.jobs.Go(func() { r.watch(hub) })
	}
	r.jobs.Go(func() { // while another goroutine reads its answers
		for _, request := range restoration {
			hub.send(request)
		}
		_ = hub.flush()
		r.goLive(hub)
	})
	return true
}

// goLive lets messages of the editor pass to the hub.
func (r *Relay) goLive(hub *link) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.opening != hub || r.ctx.Err() != nil {
		return // the hub has gone already
	}
	r.opening, r.hub = nil, hub
	r.logState(stateConnected)
	r.noticeAnswer()
	r.changed()
	if len(r.waiting) > 0 {
		r.startFlush(hub)
	}
}

// hubGone handles the loss of the hub, and answers its pending requests. It reports whether to
// connect to another one.
func (r *Relay) hubGone(hub *link) (another bool) {
	r.mu.Lock()
	if r.ctx.Err() != nil {
		r.mu.Unlock()
		return false
	}
	r.hub, r.opening, r.flushing, r.silence = nil, nil, false, ""
	another = r.shutdown == noShutdown && (!r.drain || len(r.waiting) > 0)
	lost := lostUnanswered
	if r.opts.Lost != "" {
		lost = hubLost(r.opts.Lost)
	}
	answers := r.calls.answerAll(lost)
	if r.shutdown == shutdownAgreed {
		answers = nil // the editor requested the end
	}
	r.ownRequests.Clear()
	r.subs.hubGone()
	r.logState(stateLost)
	r.changed()
	for _, answer := range answers {
		r.answer(answer)
	}
	if another && r.opts.Broken != "" {
		r.noticeSilence(r.opts.Broken)
	}
	if ends := r.terminals.hubGone(); r.shutdown == noShutdown {
		for _, end := range ends {
			r.answer(end)
		}
	}
	r.mu.Unlock()
	if another || len(answers) > 0 {
		r.opts.Logger.Warn("the hub has gone", "pending", len(answers), "another", another)
	}
	return another
}

// waiting is a message of the editor that waits for a hub.
type waiting struct {
	body  []byte
	until time.Time
}

// take removes the first waiting message; r.mu is held.
func (r *Relay) take() waiting {
	w := r.waiting[0]
	r.waiting[0] = waiting{}
	r.waiting = r.waiting[1:]
	if len(r.waiting) == 0 {
		r.waiting = nil
	}
	r.bytes -= len(w.body)
	r.changed()
	return w
}

// shortenWaits shortens the deadline of the waiting messages; r.mu is held.
func (r *Relay) shortenWaits(until time.Time) {
	for i := range r.waiting {
		if until.Before(r.waiting[i].until) {
			r.waiting[i].until = until
		}
	}
}

// startFlush begins to send the waiting messages; r.mu is held.
func (r *Relay) startFlush(hub *link) {
	r.flushing = true
	r.jobs.Go(func() { r.flushWaiting(hub) })
}

// flushWaiting sends the waiting messages, until none is left or the hub has gone.
func (r *Relay) flushWaiting(hub *link) {
	var m frame.Message
	for {
		r.mu.Lock()
		switch {
		case r.hub != hub || r.ctx.Err() != nil:
			r.mu.Unlock()
			return
		case r.silence != "": // it continues when the hub answers again
			r.flushing = false
			r.mu.Unlock()
			return
		case len(r.waiting) == 0:
			r.flushing = false
			r.changed()
			r.mu.Unlock()
			_ = hub.flush()
			return
		}
		body := r.take().body
		frame.Parse(body, &m)
		pass := r.register(&m)
		r.mu.Unlock()
		if pass {
			hub.send(body)
		}
	}
}

// refuseWaiting answers all waiting messages, because no hub is available.
func (r *Relay) refuseWaiting() {
	var m frame.Message
	for r.ctx.Err() == nil {
		r.mu.Lock()
		if len(r.waiting) == 0 {
			r.mu.Unlock()
			return
		}
		body := r.take().body
		r.mu.Unlock()
		var answer []byte
		if r.opts.Unavailable != nil {
			answer = r.opts.Unavailable(body)
		}
		frame.Parse(body, &m)
		ends := m.Kind == frame.Object && m.Method != nil && isShutdown(&m)
		r.mu.Lock()
		if answer != nil {
			r.answer(answer)
		}
		r.mu.Unlock()
		if ends {
			r.endAnswered()
		}
	}
}

// expire gives up messages that have waited too long for a hub.
func (r *Relay) expire() {
	const never = time.Hour
	var m frame.Message
	for r.ctx.Err() == nil {
		left, ends, count := never, false, 0
		r.mu.Lock()
		for (r.hub == nil || r.silence != "") && len(r.waiting) > 0 {
			if left = time.Until(r.waiting[0].until); left > 0 {
				break
			}
			body := r.take().body
			if answer := unsent(body, r.unsentError()); answer != nil {
				r.answer(answer)
			}
			count++
			frame.Parse(body, &m)
			ends = ends || isShutdown(&m)
			left = never
		}
		change := r.change
		r.mu.Unlock()
		if count > 0 {
			r.opts.Logger.Warn("messages of the editor were given up: no hub answered", "count", count)
		}
		if ends {
			r.endAnswered()
		}
		r.pause(change, left)
	}
}
