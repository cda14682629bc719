package terminal

import (
	"context"
	"os"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
)

// Descriptor stops the reading of a terminal and returns its descriptor, once
// what was read before has been reported. The file is the caller's.
func (s *Set) Descriptor(ctx context.Context, p catalog.TerminalDescriptorParams) (*os.File, error) {
	t, err := s.find(p.TerminalID)
	if err != nil {
		return nil, err
	}
	l := newLoan()
	t.mu.Lock()
	if t.proc.Ended() { // what is left of its output is on its way
		t.mu.Unlock()
		return nil, noTerminal(p.TerminalID)
	}
	if t.lent != nil {
		t.mu.Unlock()
		return nil, internalError("the terminal's descriptor is held by somebody else", kindData{Kind: "terminal_taken"})
	}
	file, err := t.duplicate()
	if err != nil {
		t.mu.Unlock()
		return nil, internalError("the terminal's descriptor could not be copied: "+withoutPath(err).Error(), kindData{Kind: "terminal_failed"})
	}
	t.lent = l
	t.limitRead()
	t.mu.Unlock()
	select {
	case <-l.printed:
		return file, nil
	case <-t.over:
		err = noTerminal(p.TerminalID)
	case <-ctx.Done():
		err = ctx.Err()
	}
	file.Close()
	t.endLoan(l)
	return nil, err
}

// Return lets a terminal be read again.
func (s *Set) Return(p catalog.TerminalReturnParams) error {
	t, err := s.find(p.TerminalID)
	if err != nil {
		return err
	}
	t.endLoan(t.loan())
	return nil
}

// endLoan ends a loan: the terminal is read here again.
func (t *terminal) endLoan(l *loan) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if l == nil || t.lent != l {
		return
	}
	t.lent = nil
	t.unblock()
	t.limitRead()
	close(l.returned)
}
