package process

import (
	"context"
	"sync"
)

// A Flow says whether the output of processes is to be read: while it is
// paused they fill their pipes, and wait. The zero value is not paused. Its
// methods may be called from any goroutine.
type Flow struct {
	mu      sync.Mutex
	resumed chan struct{} // closed when it goes on; nil while it is not paused
}

// Pause makes Wait wait.
func (f *Flow) Pause() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.resumed == nil {
		f.resumed = make(chan struct{})
	}
}

// Resume wakes whoever waits.
func (f *Flow) Resume() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.resumed != nil {
		close(f.resumed)
		f.resumed = nil
	}
}

// Paused reports whether it is paused.
func (f *Flow) Paused() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.resumed != nil
}

// Wait returns when the flow is not paused, or ctx ends.
func (f *Flow) Wait(ctx context.Context) {
	f.mu.Lock()
	resumed := f.resumed
	f.mu.Unlock()
	if resumed == nil {
		return
	}
	select {
	case <-resumed:
	case <-ctx.Done():
	}
}
