package demoagent

import (
	"bytes"
	"context"
	"errors"
	"io"
	"sync"
	"sync/atomic"
)

var errClosed = errors.New("the agent has ended")

// lineWriter keeps lines whole: every Write is one or more whole lines, and
// no two run at once. It is safe for concurrent use.
type lineWriter struct {
	mu       sync.Mutex // guards w and answered
	w        io.Writer
	answered chan struct{} // closed when the answer to a prompt is written; nil without a waiter
	closed   atomic.Bool
}

// promptAnswered is closed when the next answer to a prompt is written.
func (l *lineWriter) promptAnswered() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.answered == nil {
		l.answered = make(chan struct{})
	}
	return l.answered
}

func (l *lineWriter) Write(lines []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed.Load() {
		return 0, errClosed
	}
	n, err := l.w.Write(lines)
	if l.answered != nil && bytes.Contains(lines, []byte(`"stopReason"`)) {
		close(l.answered)
		l.answered = nil
	}
	return n, err
}

// close makes later writes fail. It does not wait for one under way, which
// may be stuck.
func (l *lineWriter) close() { l.closed.Store(true) }

// batchBytes is how much is written at once at full speed, about the size of
// a pipe's buffer.
const batchBytes = 64 << 10

// batch gathers prepared lines, because one write a line is what limits speed.
type batch struct {
	w   io.Writer
	buf []byte
}

// flush writes what was gathered, unless ctx is done.
func (b *batch) flush(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if len(b.buf) == 0 {
		return nil
	}
	_, err := b.w.Write(b.buf)
	b.buf = b.buf[:0]
	return err
}

// flushFull writes once enough was gathered.
func (b *batch) flushFull(ctx context.Context) error {
	if len(b.buf) < batchBytes {
		return nil
	}
	return b.flush(ctx)
}
