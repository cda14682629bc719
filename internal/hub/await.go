package hub

import (
	"context"
	"slices"

	"github.com/duet-rpc/duet-rpc/internal/domain"
)

// Await waits until a run has ended, or ctx.
func (h *Hub) Await(ctx context.Context, id string) (domain.Session, error) {
	s, err := h.query.Session(ctx, id)
	if err != nil {
		return s, err
	}
	ended := make(chan struct{})
	h.mu.Lock()
	h.awaiting[s.Run.ID] = append(h.awaiting[s.Run.ID], ended)
	h.mu.Unlock()
	defer h.stopAwaiting(s.Run.ID, ended)
	// It may have ended before the waiter was there.
	if s, err = h.query.ByRun(ctx, s.Run.ID); err != nil || s.State.Ended() {
		return s, err
	}
	select {
	case <-ended:
		return h.query.ByRun(ctx, s.Run.ID)
	case <-ctx.Done():
		return s, ctx.Err()
	case <-h.ctx.Done():
		return s, domain.ErrEnding
	}
}

// stopAwaiting forgets a waiter.
func (h *Hub) stopAwaiting(run int64, waiter chan struct{}) {
	h.mu.Lock()
	defer h.mu.Unlock()
	left := slices.DeleteFunc(h.awaiting[run], func(c chan struct{}) bool { return c == waiter })
	if len(left) == 0 {
		delete(h.awaiting, run)
		return
	}
	h.awaiting[run] = left
}

// endAwaiting wakes all that wait for the end of a run; mu is held.
func (h *Hub) endAwaiting(run int64) {
	for _, waiter := range h.awaiting[run] {
		close(waiter)
	}
	delete(h.awaiting, run)
}
