package terminal

import (
	"time"

	"github.com/duet-rpc/duet-rpc/internal/executor/process"
)

// A loan is the time in which somebody else reads and writes a terminal,
// by its descriptor.
type loan struct {
	printed  chan struct{} // closed when what was read before is reported
	returned chan struct{} // closed at its end
}

func newLoan() *loan {
	return &loan{printed: make(chan struct{}), returned: make(chan struct{})}
}

// loan is the one that lasts, or nil.
func (t *terminal) loan() *loan {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.lent
}

// limitRead makes reads end when they have to; t.mu is held.
func (t *terminal) limitRead() {
	var deadline time.Time
	switch {
	case t.lent != nil:
		deadline = time.Unix(1, 0)
	case t.proc.Ended():
		deadline = time.Now().Add(process.DrainTime)
	}
	_ = t.tty.SetReadDeadline(deadline)
}
