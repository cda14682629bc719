package hub

import (
	"context"
	"slices"
	"time"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/intake"
	"github.com/duet-rpc/duet-rpc/internal/redact"
	"github.com/duet-rpc/duet-rpc/internal/store"
)

// killAfter is how long an executor may take to end a task before the hub kills the executor. It
// exceeds the executor's own escalation time.
const killAfter = 12 * time.Second

// liveTurn is a turn that has started and not ended.
type liveTurn struct {
	turn   domain.Turn     // state at its start
	ctx    context.Context // cancelled to end a turn that has no executor
	cancel context.CancelFunc
	clock  *clock        // nil until execution; guarded by Hub.mu
	budget *clock        // fires when a time budget is nearly or fully used; nil without one; guarded by Hub.mu
	lease  catalog.Lease // nil until acquired; guarded by Hub.mu
	toStop bool          // agent-initiated, and stopped before it had its lease; guarded by Hub.mu
	token  string
	ended  chan struct{}
	asks   bool // waits for a human; guarded by Hub.mu

	reports *intake.Turn
	files   *checkpointed   // before its turn; nil without checkpoints; used by its own goroutine
	secrets *redact.Secrets // those given to its agent

	answered chan struct{} // closed when its executor has finished with it
}

// stop ends a turn's agent. If the turn waits for an executor, stop cancels that wait. The agent of
// an agent-initiated turn works already, so attemptWith stops it as soon as the turn has its
// executor.
func (l *liveTurn) stop(h *Hub) {
	own := l.turn.Source == domain.SourceAgent
	h.mu.Lock()
	lease := l.lease
	l.toStop = own && lease == nil
	h.mu.Unlock()
	if lease == nil {
		if !own {
			l.cancel()
		}
		return
	}
	ctx, cancel := context.WithTimeout(h.ctx, killAfter)
	defer cancel()
	for {
		r, err := lease.StopTask(ctx, catalog.StopTaskParams{
			SessionToken: l.token, TaskID: l.turn.UUID, Reason: "user_cancelled",
		})
		var again <-chan time.Time
		switch {
		case err != nil:
			h.log.Warn("an executor did not take stop_task", "turn", l.turn.UUID, "err", err)
		case !r.Stopped:
			// Duet's executors remember a stop that arrives before its prompt. A third-party
			// executor may not, and does not report when the prompt arrives.
			again = time.After(100 * time.Millisecond)
		}
		select {
		case <-again:
			continue
		case <-l.answered:
		case <-h.ctx.Done():
		case <-ctx.Done():
			if h.ctx.Err() == nil {
				h.log.Warn("an executor did not end a turn; it is killed", "turn", l.turn.UUID)
				lease.Kill()
			}
		}
		return
	}
}

// liveTurn returns the live turn with an id, or nil.
func (h *Hub) liveTurn(id int64) *liveTurn {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.live[id]
}

// stopAgent stops the agent of a turn, if it has one, without waiting.
func (h *Hub) stopAgent(live *liveTurn) {
	if live != nil {
		h.active.Go(func() { live.stop(h) })
	}
}

// follow updates the state in memory after the commit.
func (h *Hub) follow(t store.Tx, turn domain.Turn, from domain.State) {
	if turn.State.Ended() {
		t.AfterCommit(func() { h.environments.end(turn.ID, h.gates.Checks(turn.ID)) })
	}
	t.AfterCommit(func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		live := h.live[turn.ID]
		if live != nil {
			live.asks = turn.State == domain.WaitingInput
			h.noteRest()
		}
		switch {
		case turn.State.Ended():
			h.endAwaiting(turn.ID)
			delete(h.live, turn.ID)
			h.tokens.Revoke(turn.ID)
			h.intake.End(turn.ID)
			h.budget.Close(turn.ID)
			if live != nil {
				live.clock.stop()
				live.budget.stop()
				h.calmDown()
			}
		case live == nil:
		case turn.State == domain.Interrupting:
			h.stopAgent(live)
		case turn.State == domain.WaitingInput:
			live.clock.pause()
			live.budget.pause()
		case from == domain.WaitingInput && turn.State == domain.Running:
			live.clock.resume()
			live.budget.resume()
		}
	})
}

// Drain waits until no turn is working, or ctx ends. Turns that wait for a human do not count: their
// questions can be answered later. Queued turns stay queued, and nothing new starts until the hub
// closes.
func (h *Hub) Drain(ctx context.Context) {
	h.mu.Lock()
	h.draining = true
	h.mu.Unlock()
	h.rest(ctx)
}

// rest waits until no turn is working, or ctx ends. Turns that wait for a human do not count.
func (h *Hub) rest(ctx context.Context) {
	// A transaction in progress may still start turns. Whether this one commits does not matter.
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

// noteRest signals Drain that a turn may have stopped working. mu is held.
func (h *Hub) noteRest() {
	if h.rested != nil {
		close(h.rested)
		h.rested = nil
	}
}

// Busy reports whether agents are working or gates are running.
func (h *Hub) Busy() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.live) > 0 || h.gates.Busy()
}

// Idle reports whether the hub has no work and will start none by itself: no turn is active or
// queued, no agent works in the background, no terminal runs and no trigger is enabled. Questions
// of ended turns do not need a hub.
func (h *Hub) Idle(ctx context.Context) (bool, error) {
	if h.Busy() || h.intake.WorksInBackground() || len(h.terminals.List()) > 0 || h.triggers.Active() {
		return false, nil
	}
	counts, err := h.store.Load(ctx)
	return err == nil && counts[domain.Queued] == 0, err
}

// InterruptWork interrupts the turns that clients launched, but not those of triggers.
func (h *Hub) InterruptWork(ctx context.Context, reason string) {
	h.mu.Lock()
	var turns []string
	for _, live := range h.live {
		if live.turn.Source != domain.SourceTrigger {
			turns = append(turns, live.turn.UUID)
		}
	}
	h.mu.Unlock()
	for _, turn := range turns {
		if _, err := h.Interrupt(ctx, turn, reason); err != nil { // it has probably just ended
			h.log.Debug("a turn was not interrupted", "turn", turn, "err", err)
		}
	}
}

// works reports whether any turn is working without waiting for a human. mu is held.
func (h *Hub) works() bool {
	for _, live := range h.live {
		if !live.asks {
			return true
		}
	}
	return h.gates.Busy()
}

// isClosing reports whether the hub starts nothing new.
func (h *Hub) isClosing() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.closing || h.draining
}

// calmAfter is how long the hub must be without active turns before it calls Options.Idle.
const calmAfter = time.Second

// calmDown schedules Options.Idle when no turn is active. mu is held.
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

// Await waits until a turn has ended or ctx ends.
func (h *Hub) Await(ctx context.Context, id string) (domain.TurnInSession, error) {
	s, err := h.query.Turn(ctx, id)
	if err != nil {
		return s, err
	}
	ended := make(chan struct{})
	h.mu.Lock()
	h.awaiting[s.Turn.ID] = append(h.awaiting[s.Turn.ID], ended)
	h.mu.Unlock()
	defer h.stopAwaiting(s.Turn.ID, ended)
	// The turn may have ended before the waiter was registered.
	if s, err = h.query.ByTurn(ctx, s.Turn.ID); err != nil || s.State.Ended() {
		return s, err
	}
	select {
	case <-ended:
		return h.query.ByTurn(ctx, s.Turn.ID)
	case <-ctx.Done():
		return s, ctx.Err()
	case <-h.ctx.Done():
		return s, domain.ErrEnding
	}
}

// stopAwaiting removes a waiter.
func (h *Hub) stopAwaiting(turn int64, waiter chan struct{}) {
	h.mu.Lock()
	defer h.mu.Unlock()
	left := slices.DeleteFunc(h.awaiting[turn], func(c chan struct{}) bool { return c == waiter })
	if len(left) == 0 {
		delete(h.awaiting, turn)
		return
	}
	h.awaiting[turn] = left
}

// endAwaiting wakes all waiters for the end of a turn. mu is held.
func (h *Hub) endAwaiting(turn int64) {
	for _, waiter := range h.awaiting[turn] {
		close(waiter)
	}
	delete(h.awaiting, turn)
}
