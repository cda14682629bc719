package statement

import (
	"context"
	"sync/atomic"
)

// A Gate is shut from before a change can be read until what is in memory follows it,
// and its events were announced. Readers pass it when they have read: so what they saw is
// true for what they ask next, and not only in the database. Nobody waits for it while
// no commit is under way. The zero value is open.
type Gate struct{ shut atomic.Pointer[chan struct{}] }

// Shut shuts the gate. It is for the one who writes, as is Open.
func (g *Gate) Shut() {
	opened := make(chan struct{})
	g.shut.Store(&opened)
}

// Open opens the gate, if it is shut.
func (g *Gate) Open() {
	if opened := g.shut.Swap(nil); opened != nil {
		close(*opened)
	}
}

// pass waits until the gate is open, or ctx ends.
func (g *Gate) pass(ctx context.Context) error {
	opened := g.shut.Load()
	if opened == nil {
		return nil
	}
	select {
	case <-*opened:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
