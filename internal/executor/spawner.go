package executor

import (
	"errors"
	"runtime"
	"sync"
)

// A spawner starts processes from one thread that lives as long as it does: a
// child that is to die with its parent (Pdeathsig) dies with the thread that
// started it.
type spawner struct {
	mu     sync.RWMutex // guards closed, and so the sending on jobs
	closed bool
	jobs   chan func()
	done   chan struct{}
}

var errSpawnerClosed = errors.New("the executor is shutting down")

func newSpawner() *spawner {
	s := &spawner{jobs: make(chan func()), done: make(chan struct{})}
	go func() {
		defer close(s.done)
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
		for job := range s.jobs {
			job()
		}
	}()
	return s
}

// do runs start on the spawner's thread.
func (s *spawner) do(start func() error) error {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.closed {
		return errSpawnerClosed
	}
	result := make(chan error, 1)
	s.jobs <- func() { result <- start() }
	return <-result
}

// close ends the thread, and with it children that are still there.
func (s *spawner) close() {
	s.mu.Lock()
	if !s.closed {
		s.closed = true
		close(s.jobs)
	}
	s.mu.Unlock()
	<-s.done
}
