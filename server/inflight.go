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
	count atomic.Int32 // places taken; also read without mu: it is nearly always 0, and then no id can clash

	tasks // the goroutines, which deliver their reply after they left their place

	mu      sync.Mutex // guards cancels, and changes of count
	cancels map[string]context.CancelCauseFunc
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

// begin enters a request. id is nil for a request that takes a place but cannot be cancelled. It
// reports false if there are too many.
func (f *inflight) begin(id []byte, cancel context.CancelCauseFunc) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if int(f.count.Load()) >= f.limit {
		return false
	}
	f.count.Add(1)
	f.tasks.begin()
	if id != nil {
		if f.cancels == nil {
			f.cancels = make(map[string]context.CancelCauseFunc)
		}
		f.cancels[string(id)] = cancel
	}
	return true
}

// leave frees a request's place and id, just before its reply goes out: a
// peer that has the reply may use both again.
func (f *inflight) leave(id []byte) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.count.Add(-1)
	if id != nil {
		delete(f.cancels, string(id))
	}
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

// tasks are goroutines that can be waited for, until a context ends.
type tasks struct {
	mu      sync.Mutex // guards the fields below
	running int
	idle    chan struct{} // closed when running falls to 0; nil without a waiter
}

func (t *tasks) begin() {
	t.mu.Lock()
	t.running++
	t.mu.Unlock()
}

func (t *tasks) end() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.running--
	if t.running == 0 && t.idle != nil {
		close(t.idle)
		t.idle = nil
	}
}

// wait waits until none runs or ctx ends, and reports the former.
func (t *tasks) wait(ctx context.Context) bool {
	t.mu.Lock()
	if t.running == 0 {
		t.mu.Unlock()
		return true
	}
	if t.idle == nil {
		t.idle = make(chan struct{})
	}
	idle := t.idle
	t.mu.Unlock()
	select {
	case <-idle:
		return true
	case <-ctx.Done():
		return false
	}
}
