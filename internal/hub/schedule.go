package hub

import (
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/store"
)

// schedule starts queued runs while there are slots: higher priority first,
// first come first served inside a priority, one run of a thread at a time.
// One for which there is no executor waits for the next time.
func (h *Hub) schedule(t store.Tx) error {
	if h.isClosing() {
		return nil
	}
	counts, err := t.Load(h.ctx)
	if err != nil {
		return err
	}
	busy := 0
	for state, n := range counts {
		if state.HoldsSlot() {
			busy += n
		}
	}
	if counts[domain.Queued] == 0 || busy >= h.opts.Limits.MaxRuns {
		return nil
	}
	next, err := h.startable(t, h.opts.Limits.MaxRuns-busy)
	if err != nil {
		return err
	}
	for _, s := range next {
		run := s.Run
		if err := h.startNow(t, &run); err != nil {
			return err
		}
	}
	return nil
}

// startable lists at most so many runs that can start: those for whose agent
// there is no executor stay in the queue, and hold up no others.
func (h *Hub) startable(t store.Tx, most int) ([]domain.Session, error) {
	for limit := most; ; limit *= 4 {
		queued, err := t.Startable(h.ctx, limit)
		if err != nil {
			return nil, err
		}
		next := make([]domain.Session, 0, most)
		for _, s := range queued {
			if len(next) < most && h.hasRoom(s) {
				next = append(next, s)
			}
		}
		if len(next) == most || len(queued) < limit {
			return next, nil
		}
	}
}

// hasRoom reports whether there is an executor for a session that is queued.
func (h *Hub) hasRoom(s domain.Session) bool {
	agent, err := h.configured.Agent(s.Run.Agent)
	if err != nil {
		return true // it is to fail, with that
	}
	return h.executors.HasRoom(leaseFor(s.Thread.UUID, agent))
}
