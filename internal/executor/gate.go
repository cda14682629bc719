package executor

import (
	"context"
	"sync"
)

// A gate holds up whoever reads an agent while it is shut. The zero value is
// open.
type gate struct {
	mu     sync.Mutex
	opened chan struct{} // closed when it opens; nil while it is open
}

func (g *gate) shut() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.opened == nil {
		g.opened = make(chan struct{})
	}
}

func (g *gate) open() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.opened != nil {
		close(g.opened)
		g.opened = nil
	}
}

// pass waits until the gate is open or ctx ends.
func (g *gate) pass(ctx context.Context) {
	g.mu.Lock()
	opened := g.opened
	g.mu.Unlock()
	if opened == nil {
		return
	}
	select {
	case <-opened:
	case <-ctx.Done():
	}
}
