package linefilter

import (
	"sync"
)

// Responses counts responses that went to the SDK and calls that have returned,
// so that the end of the agent's output is shown to the SDK only when every
// response has been taken: it would prefer the end.
type Responses struct {
	mu                  sync.Mutex
	forwarded, returned int
	changed             chan struct{} // closed when returned rises; nil if nobody waits
}

// Forward notes that the SDK was given a response.
func (r *Responses) Forward() {
	r.mu.Lock()
	r.forwarded++
	r.mu.Unlock()
}

// Took notes that a call has returned.
func (r *Responses) Took() {
	r.mu.Lock()
	r.returned++
	if r.changed != nil {
		close(r.changed)
		r.changed = nil
	}
	r.mu.Unlock()
}

// Pending is nil if all have been taken, else a channel that is closed at the
// next change.
func (r *Responses) Pending() <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.returned >= r.forwarded {
		return nil
	}
	if r.changed == nil {
		r.changed = make(chan struct{})
	}
	return r.changed
}
