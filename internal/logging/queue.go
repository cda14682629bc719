package logging

import (
	"context"
	"fmt"
	"io"
	"sync"
)

// maxQueued bounds the lines that wait for whoever reads the log, in bytes.
const maxQueued = 1 << 20

// A queue writes lines from a goroutine of its own. An editor that starts us
// with a pipe on standard error and never reads it must not stop us: lines
// that do not fit are dropped, and counted.
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
	var spare []byte // nobody else has it
	for {
		q.mu.Lock()
		out, dropped, closed := q.lines, q.dropped, q.closed
		q.lines, q.dropped = spare[:0], 0
		q.mu.Unlock()
		if dropped > 0 {
			out = fmt.Appendf(out, "level=WARN msg=\"log lines dropped: nobody reads the log fast enough\" lines=%d\n", dropped)
		}
		spare = out
		switch {
		case len(out) > 0:
			_, _ = q.dst.Write(out) // there is nowhere to say that it failed
		case closed:
			return
		default:
			<-q.wake
		}
	}
}

// close writes what is queued and ends the goroutine, for as long as ctx lasts.
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
