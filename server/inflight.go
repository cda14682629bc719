package server

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
)

// errCancelled is the cause of a context whose request the peer cancelled.
var errCancelled = errors.New("cancelled by the peer")

// inflight is the table of the long-running requests of a connection.
type inflight struct {
	limit int
	count atomic.Int32 // also read without mu: nearly always 0, then no id can clash

	mu      sync.Mutex // guards the fields below
	cancels map[string]context.CancelCauseFunc
	idle    chan struct{} // closed when count falls to 0; nil unless somebody waits
}

// has reports whether a request with that raw id is in flight.
func (f *inflight) has(id []byte) bool {
	if f.count.Load() == 0 {
		return false
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	_, there := f.cancels[string(id)]
	return there
}

// begin enters a request; id is nil for a notification, which has no entry to
// cancel but counts. It reports false if there are too many.
func (f *inflight) begin(id []byte, cancel context.CancelCauseFunc) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if int(f.count.Load()) >= f.limit {
		return false
	}
	f.count.Add(1)
	if id != nil {
		if f.cancels == nil {
			f.cancels = make(map[string]context.CancelCauseFunc)
		}
		f.cancels[string(id)] = cancel
	}
	return true
}

// leave takes a request's id out, so that it may be used again. It is called
// just before the reply goes out.
func (f *inflight) leave(id []byte) {
	if id == nil {
		return
	}
	f.mu.Lock()
	delete(f.cancels, string(id))
	f.mu.Unlock()
}

// end counts a request out, after its reply was handed over.
func (f *inflight) end() {
	f.mu.Lock()
	if f.count.Add(-1) == 0 && f.idle != nil {
		close(f.idle)
		f.idle = nil
	}
	f.mu.Unlock()
}

// cancel cancels the request with that raw id, if it is in flight.
func (f *inflight) cancel(id []byte) bool {
	f.mu.Lock()
	cancel := f.cancels[string(id)]
	f.mu.Unlock()
	if cancel == nil {
		return false
	}
	cancel(errCancelled)
	return true
}

// wait waits until nothing is in flight or ctx ends, and reports the former.
func (f *inflight) wait(ctx context.Context) bool {
	f.mu.Lock()
	if f.count.Load() == 0 {
		f.mu.Unlock()
		return true
	}
	if f.idle == nil {
		f.idle = make(chan struct{})
	}
	idle := f.idle
	f.mu.Unlock()
	select {
	case <-idle:
		return true
	case <-ctx.Done():
		return false
	}
}
