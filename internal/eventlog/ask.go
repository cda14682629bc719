package eventlog

import (
	"time"

	"github.com/duet-rpc/duet-rpc/internal/domain"
)

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
