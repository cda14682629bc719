package threadsettings

import "sync"

// turns order those who tell the agents of threads something: one at a time for each
// thread, as they came. The zero value is ready.
type turns struct {
	mu   sync.Mutex // guards last
	last map[int64]chan struct{}
}

// take takes the next turn of a thread. It never waits: the turn has come when before is
// closed, and is over with done, which is to be called in the end, once.
func (o *turns) take(thread int64) (before <-chan struct{}, done func()) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.last == nil {
		o.last = make(map[int64]chan struct{})
	}
	mine, previous := make(chan struct{}), o.last[thread]
	if previous == nil {
		previous = make(chan struct{})
		close(previous)
	}
	o.last[thread] = mine
	return previous, func() {
		o.mu.Lock()
		defer o.mu.Unlock()
		if o.last[thread] == mine {
			delete(o.last, thread)
		}
		close(mine)
	}
}
