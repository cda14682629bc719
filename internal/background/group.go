// Package background owns goroutines that outlive the call that starts them.
package background

import (
	"context"
	"sync"
)

// A Group owns goroutines: after Close they have ended, and no other begins. The zero value is
// an open group without any. Its methods may be called from any goroutine, Go also while another
// one closes the group; a [sync.WaitGroup] does not allow that.
type Group struct {
	mu     sync.Mutex // guards the fields below
	count  int        // running goroutines
	closed bool
	ended  chan struct{} // made by Close; closed when count is 0
}

// Go runs f in a goroutine of the group. It reports whether it did: a closed group starts
// nothing.
func (g *Group) Go(f func()) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return false
	}
	g.count++
	go func() {
		defer g.done()
		f()
	}()
	return true
}

func (g *Group) done() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.count--; g.closed && g.count == 0 {
		close(g.ended)
	}
}

// Close closes the group and waits until its goroutines have returned. The error is that of ctx
// if it ends first. Close may be called more than once. It does not stop the goroutines: they
// need a context or a similar signal.
func (g *Group) Close(ctx context.Context) error {
	g.mu.Lock()
	if !g.closed {
		g.closed, g.ended = true, make(chan struct{})
		if g.count == 0 {
			close(g.ended)
		}
	}
	ended := g.ended
	g.mu.Unlock()
	select {
	case <-ended:
		return nil
	default:
	}
	select {
	case <-ended:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
