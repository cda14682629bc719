package hub

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

// A throttle tells executors to pause and to go on. Each of them is told by one
// goroutine, one thing after the other, and what counts is the last: one that
// is slow to be told is told no more than that. Its methods may be called from
// any goroutine.
type throttle struct {
	ctx context.Context // ends with the hub
	log *slog.Logger

	mu     sync.Mutex // guards the fields below
	paused bool
	links  map[*throttled]struct{}
}

// throttled is an executor that is told.
type throttled struct {
	lease  Lease
	ctx    context.Context
	cancel context.CancelFunc

	// The throttle's mu guards these.
	told   bool          // it is to pause
	unsure bool          // it is not known what it was told last
	idle   chan struct{} // closed when it has been told everything; nil while there is nothing to tell
}

// Between tries to tell an executor what it did not take.
const (
	firstRetry   = 50 * time.Millisecond
	longestRetry = time.Second
)

func newThrottle(ctx context.Context, log *slog.Logger) *throttle {
	return &throttle{ctx: ctx, log: log, links: make(map[*throttled]struct{})}
}

// set says whether executors are to pause.
func (t *throttle) set(paused bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.paused = paused
	for l := range t.links {
		t.wake(l)
	}
}

// join adds an executor, which does not pause so far, until leave is called,
// before the lease is released: it is told nothing more when leave returns.
func (t *throttle) join(lease Lease) (leave func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	l := &throttled{lease: lease}
	l.ctx, l.cancel = context.WithCancel(t.ctx)
	t.links[l] = struct{}{}
	t.wake(l)
	return func() { t.leave(l) }
}

func (t *throttle) leave(l *throttled) {
	t.mu.Lock()
	delete(t.links, l)
	l.cancel()
	idle := l.idle
	t.mu.Unlock()
	if idle != nil {
		<-idle
	}
}

// wake begins to tell an executor, unless that is done already; mu is held.
func (t *throttle) wake(l *throttled) {
	if l.idle == nil && (l.told != t.paused || l.unsure) {
		l.idle = make(chan struct{})
		go t.tell(l)
	}
}

// tell tells an executor until it knows the last that is to be told.
func (t *throttle) tell(l *throttled) {
	for retry := firstRetry; ; {
		t.mu.Lock()
		paused := t.paused
		if l.ctx.Err() != nil || l.told == paused && !l.unsure {
			close(l.idle)
			l.idle = nil
			t.mu.Unlock()
			return
		}
		t.mu.Unlock()
		send := l.lease.ResumeNotifications
		if paused {
			send = l.lease.PauseNotifications
		}
		err := send(l.ctx)
		t.mu.Lock()
		l.told, l.unsure = paused, err != nil
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
