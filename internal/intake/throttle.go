package intake

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

// An Executor is what is told to pause its reports, and to resume them.
type Executor interface {
	PauseNotifications(ctx context.Context) error
	ResumeNotifications(ctx context.Context) error
}

// A throttle tells executors to pause and to resume. Each of them is told by one
// goroutine, one thing after the other, and what counts is the last: a slow one
// misses what was taken back meanwhile. Its methods may be called from any
// goroutine.
type throttle struct {
	ctx context.Context // ends with the hub
	log *slog.Logger

	mu     sync.Mutex // guards the fields below
	paused bool
	links  map[*link]struct{}
}

// A link is to one executor.
type link struct {
	executor Executor
	ctx      context.Context
	cancel   context.CancelFunc

	// The throttle's mu guards these.
	paused   bool          // what the executor knows
	unsure   bool          // whether it knows that is not sure: telling it failed
	finished chan struct{} // closed when its goroutine has ended; nil while there is none
}

// Between tries to tell an executor what it did not take.
const (
	firstRetry   = 50 * time.Millisecond
	longestRetry = time.Second
)

func newThrottle(ctx context.Context, log *slog.Logger) *throttle {
	return &throttle{ctx: ctx, log: log, links: make(map[*link]struct{})}
}

// set says whether executors are to pause.
func (t *throttle) set(paused bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.paused = paused
	for l := range t.links {
		t.update(l)
	}
}

// join adds an executor, which does not pause so far, until leave is called,
// before its lease is released: it is told nothing more when leave returns.
func (t *throttle) join(e Executor) (leave func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	l := &link{executor: e}
	l.ctx, l.cancel = context.WithCancel(t.ctx)
	t.links[l] = struct{}{}
	t.update(l)
	return func() { t.leave(l) }
}

func (t *throttle) leave(l *link) {
	t.mu.Lock()
	delete(t.links, l)
	l.cancel()
	finished := l.finished
	t.mu.Unlock()
	if finished != nil {
		<-finished
	}
}

// update starts the goroutine that tells an executor, where there is something to
// tell and it does not run; mu is held.
func (t *throttle) update(l *link) {
	if l.finished == nil && (l.paused != t.paused || l.unsure) {
		l.finished = make(chan struct{})
		go t.tell(l)
	}
}

// tell sends an executor the present state, paused or not, again and again until
// it has confirmed the one that holds by then. leave waits for it.
func (t *throttle) tell(l *link) {
	for retry := firstRetry; ; {
		t.mu.Lock()
		paused := t.paused
		if l.ctx.Err() != nil || l.paused == paused && !l.unsure {
			close(l.finished)
			l.finished = nil
			t.mu.Unlock()
			return
		}
		t.mu.Unlock()
		send := l.executor.ResumeNotifications
		if paused {
			send = l.executor.PauseNotifications
		}
		err := send(l.ctx)
		t.mu.Lock()
		l.paused, l.unsure = paused, err != nil
		t.mu.Unlock()
		if err == nil {
			retry = firstRetry
			continue
		}
		t.log.Debug("an executor was not told to pause, or to go on", "pause", paused, "err", err)
		select {
		case <-time.After(retry):
		case <-l.ctx.Done():
		}
		retry = min(2*retry, longestRetry)
	}
}
