package hub

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/duet-rpc/duet-rpc/internal/store"

	"github.com/duet-rpc/duet-rpc/internal/domain"
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
		if holdsSlot(state) {
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
		token := h.tokens.Issue(t, run)
		if err := h.transition(t, &run, domain.Starting, outcome{}); err != nil {
			return err
		}
		h.start(t, run, token)
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
	agent, err := h.agent(s.Run.Agent)
	if err != nil {
		return true // it is to fail, with that
	}
	return h.executors.HasRoom(leaseFor(s.Thread.UUID, agent))
}

// Interrupt ends a run: one that is queued is cancelled, one that runs is
// interrupted and can be continued. It returns before the agent has ended.
func (h *Hub) Interrupt(ctx context.Context, id, reason string) (domain.Session, error) {
	reason = cmp.Or(reason, "user_cancelled")
	var run domain.Run
	err := h.write(ctx, func(t store.Tx) error {
		var err error
		if run, err = h.find(t, id); err != nil {
			return err
		}
		switch {
		case run.State == domain.Draft:
			return h.transition(t, &run, domain.Discarded, outcome{reason: reason})
		case run.State == domain.Queued:
			return h.transition(t, &run, domain.Cancelled, outcome{reason: reason})
		case run.State == domain.Interrupting:
			return nil // it is ending already
		case run.State.Ended():
			return domain.Errorf(domain.KindNotCancellable, "%s has ended already: it is %s", domain.TaskName(run.Task), run.State)
		}
		return h.transition(t, &run, domain.Interrupting, outcome{reason: reason})
	})
	if err != nil {
		return domain.Session{}, err
	}
	return h.query.ByRun(ctx, run.ID)
}

// expire ends a run that took too long.
func (h *Hub) expire(id int64) {
	err := h.write(h.ctx, func(t store.Tx) error {
		run, err := t.Run(h.ctx, id)
		if err != nil || run.State.Ended() || run.State == domain.Interrupting {
			return err
		}
		return h.transition(t, &run, domain.Interrupting, outcome{reason: "timeout", code: codeTimeout, message: "it took longer than it may; raise limits.run_timeout, or continue it"})
	})
	if err != nil && !errors.Is(err, context.Canceled) {
		h.log.Warn("a run could not be timed out", "err", err)
	}
}

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
		return s, errClosing
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
