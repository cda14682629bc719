package executor

import (
	"context"
	"errors"
	"os"
	"time"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
)

// A holding is the time in which somebody else reads and writes a terminal,
// by its descriptor.
type holding struct {
	printed  chan struct{} // closed when what was read before is reported
	returned chan struct{} // closed at its end
}

func newHolding() *holding {
	return &holding{printed: make(chan struct{}), returned: make(chan struct{})}
}

// A piece is output of a terminal, or a place in it.
type piece struct {
	output  []byte
	printed chan struct{} // closed when what stands before is reported; of a place
}

// read gives what the terminal prints, until its program has ended, but for
// what others read.
func (t *terminal) read(to chan<- piece) {
	defer t.proc.closeOutput()
	defer close(t.over)
	t.x.work.Go(func() {
		select {
		case <-t.proc.done:
			t.mu.Lock()
			t.limitRead()
			t.mu.Unlock()
		case <-t.over:
		}
	})
	buf := make([]byte, terminalChunk)
	for {
		t.x.gate.pass(t.x.ctx)
		if !t.mayRead(to) {
			return
		}
		n, err := t.proc.stdout.Read(buf)
		if n > 0 {
			to <- piece{output: append([]byte(nil), buf[:n]...)}
		}
		switch {
		case err == nil:
		case !errors.Is(err, os.ErrDeadlineExceeded):
			return
		case t.holding() == nil && t.proc.ended():
			t.drain(buf, to)
			return
		}
	}
}

// drain gives what a program that has ended left in its terminal.
func (t *terminal) drain(buf []byte, to chan<- piece) {
	rest := &drained{f: t.proc.stdout, left: drainBytes}
	for {
		n, err := rest.Read(buf)
		if n > 0 {
			to <- piece{output: append([]byte(nil), buf[:n]...)}
		}
		if err != nil {
			return
		}
	}
}

// limitRead makes reads end when they have to; t.mu is held.
func (t *terminal) limitRead() {
	var deadline time.Time
	switch {
	case t.held != nil:
		deadline = time.Unix(1, 0)
	case t.proc.ended():
		deadline = time.Now().Add(drainTime)
	}
	_ = t.proc.stdout.SetReadDeadline(deadline)
}

func (t *terminal) holding() *holding {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.held
}

// mayRead waits while somebody else reads, and reports whether there is
// anything left to read.
func (t *terminal) mayRead(to chan<- piece) bool {
	for {
		h := t.holding()
		if h == nil {
			return true
		}
		to <- piece{printed: h.printed}
		select {
		case <-h.returned:
		case <-t.proc.done: // the rest is for who has the descriptor
			return false
		}
	}
}

// TerminalDescriptor implements catalog.Executor.
func (x *Executor) TerminalDescriptor(ctx context.Context, p catalog.TerminalDescriptorParams) (*os.File, error) {
	t, err := x.terminal(p.TerminalID)
	if err != nil {
		return nil, err
	}
	h := newHolding()
	t.mu.Lock()
	if t.proc.ended() { // what is left of its output is on its way
		t.mu.Unlock()
		return nil, noTerminal(p.TerminalID)
	}
	if t.held != nil {
		t.mu.Unlock()
		return nil, internalError("the terminal's descriptor is held by somebody else", kindData{Kind: "terminal_taken"})
	}
	file, err := t.duplicate()
	if err != nil {
		t.mu.Unlock()
		return nil, internalError("the terminal's descriptor could not be copied: "+withoutPath(err).Error(), kindData{Kind: "terminal_failed"})
	}
	t.held = h
	t.limitRead()
	t.mu.Unlock()
	select {
	case <-h.printed:
		return file, nil
	case <-t.over:
		err = noTerminal(p.TerminalID)
	case <-ctx.Done():
		err = ctx.Err()
	}
	file.Close()
	t.release(h)
	return nil, err
}

// TerminalReturn implements catalog.Executor.
func (x *Executor) TerminalReturn(_ context.Context, p catalog.TerminalReturnParams) error {
	t, err := x.terminal(p.TerminalID)
	if err != nil {
		return err
	}
	t.release(t.holding())
	return nil
}

// release ends a holding: the terminal is read here again.
func (t *terminal) release(h *holding) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if h == nil || t.held != h {
		return
	}
	t.held = nil
	t.unblock()
	t.limitRead()
	close(h.returned)
}
