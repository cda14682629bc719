package hub

import (
	"context"
	"time"

	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/store"
)

// Drain waits until nothing runs that does not wait for a human, or ctx ends: a
// question can be answered later, too. Queued runs stay queued, and nothing new is
// started until the hub is closed.
func (h *Hub) Drain(ctx context.Context) {
	h.mu.Lock()
	h.draining = true
	h.mu.Unlock()
	h.rest(ctx)
}

// rest waits until nothing runs that does not wait for a human, or ctx ends.
func (h *Hub) rest(ctx context.Context) {
	// A change that is under way may still start some. That it is kept is no matter.
	_ = h.store.Write(ctx, func(store.Tx) error { return nil })
	h.mu.Lock()
	defer h.mu.Unlock()
	for h.works() {
		if h.rested == nil {
			h.rested = make(chan struct{})
		}
		rested := h.rested
		h.mu.Unlock()
		select {
		case <-rested:
		case <-ctx.Done():
		case <-h.ctx.Done():
		}
		h.mu.Lock()
		if ctx.Err() != nil || h.ctx.Err() != nil {
			return
		}
	}
}

// noteRest tells who drains that a run may do nothing on its own any more; mu is
// held.
func (h *Hub) noteRest() {
	if h.rested != nil {
		close(h.rested)
		h.rested = nil
	}
}

// Busy reports whether agents are at work, or what they did is checked.
func (h *Hub) Busy() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.live) > 0 || h.gates.Busy()
}

// Idle reports whether nothing is under way and nothing is to begin by itself: no run is active
// or queued, no agent works in the background, no terminal runs and no trigger is on. Questions
// of runs that have ended wait without a hub.
func (h *Hub) Idle(ctx context.Context) (bool, error) {
	if h.Busy() || h.intake.WorksInBackground() || len(h.terminals.List()) > 0 || h.triggers.Active() {
		return false, nil
	}
	counts, err := h.store.Load(ctx)
	return err == nil && counts[domain.Queued] == 0, err
}

// InterruptWork interrupts what clients have begun, and leaves what triggers have.
func (h *Hub) InterruptWork(ctx context.Context, reason string) {
	h.mu.Lock()
	var runs []string
	for _, live := range h.live {
		if live.run.Source != domain.SourceTrigger {
			runs = append(runs, live.run.UUID)
		}
	}
	h.mu.Unlock()
	for _, run := range runs {
		if _, err := h.Interrupt(ctx, run, reason); err != nil { // most likely it has just ended
			h.log.Debug("a run was not interrupted", "run", run, "err", err)
		}
	}
}

// works reports whether a run does something on its own; mu is held.
func (h *Hub) works() bool {
	for _, live := range h.live {
		if !live.asks {
			return true
		}
	}
	return h.gates.Busy()
}

// isClosing reports whether nothing new is to be started.
func (h *Hub) isClosing() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.closing || h.draining
}

// calmAfter is how long nothing must run before memory is given back.
const calmAfter = time.Second

// calmDown gives memory back when nothing runs any more. mu is held.
func (h *Hub) calmDown() {
	if len(h.live) > 0 || h.opts.Idle == nil {
		return
	}
	if h.calm == nil {
		h.calm = time.AfterFunc(calmAfter, func() {
			h.active.Go(func() {
				if !h.Busy() {
					h.events.Forget()
					h.opts.Idle()
				}
			})
		})
		return
	}
	h.calm.Reset(calmAfter)
}
