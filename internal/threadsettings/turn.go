package threadsettings

import "sync"

// turns order those who tell the agents of threads something: one at a time for each
// thread, as they came. The zero value is ready.
type turns struct {
	mu   sync.Mutex // guards the fields below
	last map[int64]chan struct{}
	kept map[int64]int // turns of threads that tell of a change which is kept already
}

// A turn is that of one of them. It has come when before is closed.
type turn struct {
	before <-chan struct{}

	of     *turns
	thread int64
	isKept bool          // the change
	mine   chan struct{} // closed when it is over
}

// take takes the next turn of a thread, to tell of a change that is kept already or is
// not. It never waits.
func (o *turns) take(thread int64, isKept bool) turn {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.last == nil {
		o.last, o.kept = make(map[int64]chan struct{}), make(map[int64]int)
	}
	mine, previous := make(chan struct{}), o.last[thread]
	if previous == nil {
		previous = make(chan struct{})
		close(previous)
	}
	o.last[thread] = mine
	if isKept {
		o.kept[thread]++
	}
	return turn{previous, o, thread, isKept, mine}
}

// done ends the turn. It is to be called in the end, once.
func (t turn) done() {
	t.of.mu.Lock()
	defer t.of.mu.Unlock()
	if t.isKept {
		t.of.kept[t.thread]--
	}
	if t.of.last[t.thread] == t.mine {
		delete(t.of.last, t.thread)
		delete(t.of.kept, t.thread)
	}
	close(t.mine)
}

// isOvertaken reports whether a change that is kept already is to be told behind this
// turn, which has come.
func (t turn) isOvertaken() bool {
	t.of.mu.Lock()
	defer t.of.mu.Unlock()
	return t.of.kept[t.thread] > 0
}
