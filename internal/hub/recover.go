package hub

import (
	"context"

	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/store"
)

// recover picks up what a process that is dead left behind: its runs become
// interrupted and can be continued, its questions stay, its agents are ended.
// Runs that were queued are started.
func (h *Hub) recover(ctx context.Context) error {
	if err := h.events.Open(ctx, h.store); err != nil {
		return err
	}
	left, err := h.store.Processes(ctx)
	if err != nil {
		return err
	}
	// Not h.write: Open itself sees to a disk that is full.
	err = h.change(ctx, func(t store.Tx) error {
		if err := h.abandon(t, codeOrphaned, "the process that ran this has died; continue it to go on where it was"); err != nil {
			return err
		}
		for _, p := range left {
			if err := t.DropProcess(p.Mark); err != nil {
				return err
			}
		}
		if err := h.intake.CutBackground(t); err != nil {
			return err
		}
		h.mayStart = true // what was queued then
		return h.keepChat(t)
	})
	if err == nil && h.opts.KillAgents != nil {
		h.opts.KillAgents(left)
	}
	return err
}

// abandon interrupts everything that has an agent. Questions stay pending,
// marked stale: whoever asked them is gone.
func (h *Hub) abandon(t store.Tx, code, message string) error {
	runs, err := t.RunsIn(h.ctx, domain.Starting, domain.Running, domain.WaitingInput, domain.Interrupting)
	if err != nil {
		return err
	}
	for _, run := range runs {
		if run.Source == domain.SourceQuestion { // its caller has gone with the connection, and does not ask it again
			if err := h.transition(t, &run, domain.Interrupted, outcome{code: code, message: questionGone, reason: "orphaned"}); err != nil {
				return err
			}
			continue
		}
		if err := h.approvals.KeepQuestions(t, run); err != nil {
			return err
		}
		to := outcome{code: code, message: message, reason: "orphaned", leaveApprovals: true}
		if err := h.transition(t, &run, domain.Interrupted, to); err != nil {
			return err
		}
	}
	return nil
}
