package server

import (
	"context"
	"sync"
)

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
