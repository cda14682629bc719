package threadsettings

import "sync"

// turns serializes the sends to the agents of threads: one at a time per thread, in order. The zero
// value is ready.
type turns struct {
	mu   sync.Mutex // guards the fields below
	last map[int64]chan struct{}
	kept map[int64]int // turns of threads whose change is already stored
}

// turn is one send. It may run when before is closed.
type turn struct {
	before <-chan struct{}

	of     *turns
	thread int64
	isKept bool          // the change is stored
	mine   chan struct{} // closed at its end
}

// take returns the next turn of a thread, for a change that is already stored or not. It never
// blocks.
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

// done ends the turn. It must be called exactly once.
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

// isOvertaken reports whether a stored change waits behind this turn, which has begun.
func (t turn) isOvertaken() bool {
	t.of.mu.Lock()
	defer t.of.mu.Unlock()
	return t.of.kept[t.thread] > 0
}
