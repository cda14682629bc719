package process

import (
	"errors"
	"runtime"
	"sync"
)

// A starterThread starts processes from one thread that lives as long as it
// does: a child that is to die with its parent (Pdeathsig) dies with the thread
// that started it.
type starterThread struct {
	mu     sync.RWMutex // guards closed, and so the sending on jobs
	closed bool
	jobs   chan func()
	done   chan struct{}
}

var errClosed = errors.New("the executor is shutting down")

func newStarterThread() *starterThread {
	t := &starterThread{jobs: make(chan func()), done: make(chan struct{})}
	go func() { // ends with close, which waits for it
		defer close(t.done)
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
		for job := range t.jobs {
			job()
		}
	}()
	return t
}

// do runs start on the thread.
func (t *starterThread) do(start func() error) error {
	t.mu.RLock()
	defer t.mu.RUnlock()
	if t.closed {
		return errClosed
	}
	result := make(chan error, 1)
	t.jobs <- func() { result <- start() }
	return <-result
}

// close ends the thread, and with it children that are still there.
func (t *starterThread) close() {
	t.mu.Lock()
	if !t.closed {
		t.closed = true
		close(t.jobs)
	}
	t.mu.Unlock()
	<-t.done
}
