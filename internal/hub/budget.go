package hub

import (
	"github.com/duet-rpc/duet-rpc/internal/config"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/store"
)

// forBudget is the life of runs as what they use is held against their budgets.
type forBudget struct{ hub *Hub }

// Interrupt is as of [budget.Runs].
func (f forBudget) Interrupt(t store.Tx, run domain.Run, code, message string) error {
	now, err := t.Run(f.hub.ctx, run.ID)
	if err != nil || now.State.Ended() || now.State == domain.Interrupting {
		return err
	}
	return f.hub.transition(t, &now, domain.Interrupting, outcome{reason: "budget_reached", code: code, message: message})
}

// Warn is as of [budget.Runs].
func (f forBudget) Warn(t store.Tx, run domain.Run, message string) error {
	return f.hub.conversation.BudgetNear(t, run, message)
}

// budgets are the limits of the configuration as they are now.
func (h *Hub) budgets() config.Budget {
	if h.opts.Budget == nil {
		return config.Budget{}
	}
	return h.opts.Budget()
}

// spend holds what a run has used against its budgets, and has that done again when a
// budget of time is near or used up.
func (h *Hub) spend(t store.Tx, live *liveRun) error {
	run, err := t.Run(h.ctx, live.run.ID)
	if err != nil || run.State.Ended() {
		return err
	}
	if err := h.budget.Used(t, run); err != nil {
		return err
	}
	left, limited, err := h.budget.TimeLeft(t, run)
	if err != nil || !limited {
		return err
	}
	t.AfterCommit(func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		if h.live[live.run.ID] != live { // it has ended already
			return
		}
		live.budget = newClock(left, func() { h.active.Go(func() { h.timeUsed(live) }) })
		if live.asks {
			live.budget.pause()
		}
	})
	return nil
}

// timeUsed looks at what a run has used when that is due.
func (h *Hub) timeUsed(live *liveRun) {
	err := h.write(h.ctx, func(t store.Tx) error { return h.spend(t, live) })
	if err != nil && h.ctx.Err() == nil {
		h.log.Warn("what a run has used could not be held against its budget", "err", err)
	}
}
