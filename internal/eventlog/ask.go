package eventlog

import (
	"time"

	"github.com/duet-rpc/duet-rpc/internal/domain"
)

// An ask is something that the log does not keep, and that subscribers are to answer.
type ask struct {
	event domain.Event
	heard chan struct{} // closed once a subscriber is told
}

// Ask tells subscribers something that is not kept in the log and that one of them is to
// answer: those that are there, and those that come before it is withdrawn, each once. heard
// is closed when the first one is told.
func (l *Log) Ask(e domain.Event) (heard <-chan struct{}, withdraw func()) {
	e.Time = time.Now()
	a := &ask{e, make(chan struct{})}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.asked[a] = struct{}{}
	for s := range l.open {
		l.ask(a, s)
	}
	return a.heard, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.asked, a)
	}
}

// ask tells a subscription what is asked. The log is locked.
func (l *Log) ask(a *ask, s *Subscription) {
	if !s.wants(a.event) || !s.unkept.put(a.event) {
		return
	}
	s.wake.up()
	select {
	case <-a.heard:
	default:
		close(a.heard)
	}
}
