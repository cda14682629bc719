package hub

import (
	"context"
	"time"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/intake"
	"github.com/duet-rpc/duet-rpc/internal/redact"
	"github.com/duet-rpc/duet-rpc/internal/store"
)

// killAfter is how long an executor may take to end a task before it is
// killed itself: longer than its own ladder takes.
const killAfter = 12 * time.Second

// A liveRun is a run that was started and has not ended.
type liveRun struct {
	run    domain.Run      // as it was when it started
	ctx    context.Context // ends when the run is to end without an executor
	cancel context.CancelFunc
	clock  *clock        // nil until it is executed; guarded by Hub.mu
	budget *clock        // tells when a budget of time is near or used up; nil where there is none; guarded by Hub.mu
	lease  catalog.Lease // nil until there is one; guarded by Hub.mu
	token  string
	ended  chan struct{}
	asks   bool // it waits for a human; guarded by Hub.mu

	reports *intake.Run
	secrets *redact.Secrets // those that its agent was given

	answered chan struct{} // closed when its executor has nothing to do with it any more
}

// stop ends a run's agent. Without an executor there is none yet, and the
// goroutine that waits for one is told.
func (l *liveRun) stop(h *Hub) {
	h.mu.Lock()
	lease := l.lease
	h.mu.Unlock()
	if lease == nil {
		l.cancel()
		return
	}
	ctx, cancel := context.WithTimeout(h.ctx, killAfter)
	defer cancel()
	for {
		r, err := lease.StopTask(ctx, catalog.StopTaskParams{SessionToken: l.token, TaskID: l.run.UUID, Reason: "user_cancelled"})
		var again <-chan time.Time
		switch {
		case err != nil:
			h.log.Warn("an executor did not take stop_task", "run", l.run.UUID, "err", err)
		case !r.Stopped:
			// Ours remembers a stop that overtakes its prompt. One that somebody
			// else wrote may not, and does not tell when the prompt has come.
			again = time.After(100 * time.Millisecond)
		}
		select {
		case <-again:
			continue
		case <-l.answered:
		case <-h.ctx.Done():
		case <-ctx.Done():
			if h.ctx.Err() == nil {
				h.log.Warn("an executor did not end a task; it is killed", "run", l.run.UUID)
				lease.Kill()
			}
		}
		return
	}
}

// liveRun is the run if it has a goroutine, or nil.
func (h *Hub) liveRun(id int64) *liveRun {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.live[id]
}

// stopAgent stops the agent of a run, if there is one, without waiting for that.
func (h *Hub) stopAgent(live *liveRun) {
	if live != nil {
		h.active.Go(func() { live.stop(h) })
	}
}

// follow brings what is in memory after the commit.
func (h *Hub) follow(t store.Tx, run domain.Run, from domain.State) {
	if run.State.Ended() {
		t.AfterCommit(func() { h.environments.end(run.ID, h.gates.Checks(run.ID)) })
	}
	t.AfterCommit(func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		live := h.live[run.ID]
		if live != nil {
			live.asks = run.State == domain.WaitingInput
			h.noteRest()
		}
		switch {
		case run.State.Ended():
			h.endAwaiting(run.ID)
			delete(h.live, run.ID)
			h.tokens.Revoke(run.ID)
			h.intake.End(run.ID)
			h.budget.Close(run.ID)
			if live != nil {
				live.clock.stop()
				live.budget.stop()
				h.calmDown()
			}
		case live == nil:
		case run.State == domain.Interrupting:
			h.stopAgent(live)
		case run.State == domain.WaitingInput:
			live.clock.pause()
			live.budget.pause()
		case from == domain.WaitingInput && run.State == domain.Running:
			live.clock.resume()
			live.budget.resume()
		}
	})
}
