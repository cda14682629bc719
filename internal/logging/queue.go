package logging

import (
	"context"
	"fmt"
	"io"
	"sync"
)

// maxQueued bounds the queue of lines, in bytes.
const maxQueued = 1 << 20

// A queue writes lines from its own goroutine. An editor that starts the process with a pipe on
// standard error and never reads it must not block the process: lines that do not fit are
// dropped, and counted.
type queue struct {
	dst  io.Writer
	wake chan struct{} // has room for one
	done chan struct{} // closed when the goroutine has ended

	mu      sync.Mutex // guards the fields below
	lines   []byte
	dropped int
	closed  bool
}

func newQueue(dst io.Writer) *queue {
	q := &queue{dst: dst, wake: make(chan struct{}, 1), done: make(chan struct{})}
	go q.run()
	return q
}

// Write queues one line. It never blocks and never fails.
func (q *queue) Write(line []byte) (int, error) {
	q.mu.Lock()
	if len(q.lines)+len(line) > maxQueued {
		q.dropped++
	} else {
		q.lines = append(q.lines, line...)
	}
	q.mu.Unlock()
	q.signal()
	return len(line), nil
}

func (q *queue) signal() {
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

func (q *queue) run() {
	defer close(q.done)
	var spare []byte // owned by this goroutine
	for {
		q.mu.Lock()
		out, dropped, closed := q.lines, q.dropped, q.closed
		q.lines, q.dropped = spare[:0], 0
		q.mu.Unlock()
		if dropped > 0 {
			out = fmt.Appendf(out, "level=WARN msg=\"log lines dropped: the log is not read fast enough\" lines=%d\n", dropped)
		}
		spare = out
		switch {
		case len(out) > 0:
			_, _ = q.dst.Write(out) // an error could be logged nowhere
		case closed:
			return
		default:
			<-q.wake
		}
	}
}

// close writes the queue and ends the goroutine, until ctx ends.
func (q *queue) close(ctx context.Context) {
	q.mu.Lock()
	q.closed = true
	q.mu.Unlock()
	q.signal()
	select {
	case <-q.done:
	case <-ctx.Done():
	}
}
