package gate

import (
	"context"
	"slices"

	"github.com/duet-rpc/duet-rpc/internal/domain"
)

// Await waits until the loop of a run has ended, or ctx ends. has is false if the run has no loop.
func (e *Engine) Await(ctx context.Context, run int64) (l domain.GateLoop, has bool, err error) {
	if l, has, err = e.Of(ctx, run); err != nil || !has {
		return l, has, err
	}
	over := make(chan struct{})
	e.mu.Lock()
	e.awaiting[l.ID] = append(e.awaiting[l.ID], over)
	e.mu.Unlock()
	defer e.stopAwaiting(l.ID, over)
	// The loop may have ended before the waiter was registered.
	if l, has, err = e.Of(ctx, run); err != nil || !has || l.IsOver() {
		return l, has, err
	}
	select {
	case <-over:
		return e.Of(ctx, run)
	case <-ctx.Done():
		return l, true, ctx.Err()
	case <-e.ctx.Done():
		return l, true, domain.ErrEnding
	}
}

// stopAwaiting removes a waiter.
func (e *Engine) stopAwaiting(loop int64, waiter chan struct{}) {
	e.mu.Lock()
	defer e.mu.Unlock()
	left := slices.DeleteFunc(e.awaiting[loop], func(c chan struct{}) bool { return c == waiter })
	if len(left) == 0 {
		delete(e.awaiting, loop)
		return
	}
	e.awaiting[loop] = left
}
