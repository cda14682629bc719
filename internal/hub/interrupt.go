package hub

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/query"
	"github.com/duet-rpc/duet-rpc/internal/store"
)

// Interrupt ends a turn. A queued turn is cancelled; an active one is interrupted and can be
// continued. For a turn with gates, Interrupt ends the later turn or the gate check that works for it
// now. For a turn whose agent continued by itself, it ends the agent-initiated turn, and for one with
// background work, that work. Interrupt returns before the agent has ended.
func (h *Hub) Interrupt(ctx context.Context, id, reason string) (domain.TurnInSession, error) {
	reason = cmp.Or(reason, "user_cancelled")
	var turn domain.Turn
	err := h.write(ctx, func(t store.Tx) error {
		var err error
		if turn, err = h.findAtWork(t, id); err != nil {
			return err
		}
		if turn.State.Ended() {
			stopped, current, err := h.gates.Stop(t, turn, reason)
			if err != nil || stopped {
				return err
			}
			if current != 0 { // another turn works for it now
				if turn, err = t.Turn(h.ctx, current); err != nil {
					return err
				}
			}
		}
		if turn.State.Ended() {
			if turn, err = h.goneOnAfter(t, turn); err != nil {
				return err
			}
		}
		switch {
		case turn.State == domain.Draft:
			return h.transition(t, &turn, domain.Discarded, outcome{reason: reason})
		case turn.State == domain.Queued:
			return h.transition(t, &turn, domain.Cancelled, outcome{reason: reason})
		case turn.State == domain.Interrupting:
			return nil // already ending
		case turn.State.Ended() && len(h.intake.Background(turn.Session)) > 0:
			return h.endBackground(t, turn)
		case turn.State.Ended():
			return domain.Errorf(domain.KindNotCancellable, "%s has ended already: it is %s",
				turn.Label(), turn.State.Words())
		}
		if turn.IsQuestion() { // it has no agent
			return h.transition(t, &turn, domain.Interrupted, outcome{reason: reason})
		}
		return h.transition(t, &turn, domain.Interrupting, outcome{reason: reason})
	})
	if err != nil {
		return domain.TurnInSession{}, err
	}
	return h.query.ByTurn(ctx, turn.ID)
}

// findAtWork returns the turn that an id names. If it names a session, this is the turn that its agent
// works on or that waits for a person, if there is one, rather than the last one: prompts behind it may
// be queued.
func (h *Hub) findAtWork(t store.Tx, id string) (domain.Turn, error) {
	turn, err := query.Find(h.ctx, t, id)
	if err != nil || turn.State.Active() {
		return turn, err
	}
	whole, err := t.NamesSession(h.ctx, id)
	if err != nil || !whole {
		return turn, err
	}
	unfinished, err := t.UnfinishedTurns(h.ctx, turn.Session)
	for _, one := range unfinished {
		if one.State.Active() {
			return one, err
		}
	}
	return turn, err
}

// endBackground stops the background work of an agent. An agent that cannot stop it is ended: the
// session records what was cut short, and the next prompt resumes the agent's session.
func (h *Hub) endBackground(t store.Tx, turn domain.Turn) error {
	session, err := t.Session(h.ctx, turn.Session)
	if err != nil {
		return err
	}
	agent, err := h.configured.Agent(session.Agent)
	if err != nil {
		return err
	}
	t.AfterCommit(func() {
		h.active.Go(func() {
			ctx, cancel := context.WithTimeout(h.ctx, killAfter)
			defer cancel()
			lease, err := h.executors.Acquire(ctx, leaseFor(session.UUID, agent))
			if err != nil {
				return // the executor is gone
			}
			defer lease.Release()
			if _, err := lease.ReleaseSession(ctx, catalog.ReleaseSessionParams{SessionID: session.UUID, Force: true}); err != nil {
				h.log.Warn("an executor did not end an agent that works in the background", "err", err)
			}
		})
	})
	return nil
}

// StopBackgroundTask stops one task of the background work of a session's agent, by its id in the
// session's list. It fails with KindNotOffered if the agent cannot stop that task alone.
func (h *Hub) StopBackgroundTask(ctx context.Context, id, task string) (domain.TurnInSession, error) {
	s, err := h.query.Turn(ctx, id)
	if err != nil {
		return s, err
	}
	var ids []string
	for _, b := range h.intake.Background(s.Turn.Session) {
		ids = append(ids, b.ID)
	}
	if !slices.Contains(ids, task) {
		return s, domain.Invalid("background", "the id of a task that the session's agent does in the background",
			strconv.Quote(task), ids...)
	}
	agent, err := h.configured.Agent(s.Session.Agent)
	if err != nil {
		return s, err
	}
	lease, err := h.executors.Acquire(ctx, leaseFor(s.Session.UUID, agent))
	if err != nil {
		return s, err
	}
	defer lease.Release()
	result, err := lease.ReleaseSession(ctx, catalog.ReleaseSessionParams{SessionID: s.Session.UUID, Background: task})
	switch {
	case err != nil:
		return s, err
	case result.Released, result.Reason == catalog.ReleaseCancelled: // released: the agent has ended
		return s, nil
	case result.Error != "":
		return s, domain.Errorf(domain.KindNotOffered,
			"the agent did not stop this task: %s; interrupt the session without a task to stop all of its background work",
			result.Error)
	}
	return s, domain.Errorf(domain.KindNotOffered,
		"the agent cannot stop one background task; interrupt the session without a task to stop all of them")
}

// expire ends a turn whose time limit is reached.
func (h *Hub) expire(id int64) {
	err := h.write(h.ctx, func(t store.Tx) error {
		turn, err := t.Turn(h.ctx, id)
		if err != nil || turn.State.Ended() || turn.State == domain.Interrupting {
			return err
		}
		limit := strings.NewReplacer("h0m0s", "h", "m0s", "m").Replace(h.limitOf(turn).String())
		return h.transition(t, &turn, domain.Interrupting, outcome{
			reason: "timeout", code: codeTimeout,
			message: "it took longer than it may (" + limit +
				"); raise limits.turn_timeout, give it more with prompt --timeout, or continue it",
		})
	})
	if err != nil && !errors.Is(err, context.Canceled) {
		h.log.Warn("a turn could not be timed out", "err", err)
	}
}

// recover handles what a dead process left: it interrupts the turns, which can be continued, keeps
// their questions, ends their agents, and starts queued turns.
func (h *Hub) recover(ctx context.Context) error {
	if err := h.events.Open(ctx, h.store); err != nil {
		return err
	}
	left, err := h.store.Processes(ctx)
	if err != nil {
		return err
	}
	// Not h.write: Open itself handles a full disk.
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
		h.mayStart = true // starts turns that were queued then
		return nil
	})
	if err == nil && h.opts.KillAgents != nil {
		h.opts.KillAgents(left)
	}
	return err
}

// lastLogged returns the time of the last event of the log, or the zero time.
func lastLogged(ctx context.Context, t store.Tx) (at time.Time, err error) {
	events, err := t.Events(ctx, t.Seq()-1, 1)
	switch {
	case store.IsDamaged(err):
		return at, nil
	case err != nil || len(events) == 0:
		return at, err
	}
	return events[0].Time, nil
}

// abandon interrupts every turn that has an agent. Their questions stay open and are marked stale,
// because the agents that asked are gone.
func (h *Hub) abandon(t store.Tx, code, message string) error {
	turns, err := t.TurnsIn(h.ctx, domain.Starting, domain.Running, domain.WaitingInput, domain.Interrupting)
	if err != nil {
		return err
	}
	ended, err := lastLogged(h.ctx, t)
	if err != nil {
		return err
	}
	for _, turn := range turns {
		if !h.clocks.knows(turn.ID) && turn.State != domain.WaitingInput && !ended.IsZero() { // another process worked until then
			turn.ClockOff += t.Now().Sub(ended)
		}
		if turn.Source == domain.SourceQuestion { // its client lost the connection and does not ask again
			if err := h.transition(t, &turn, domain.Interrupted, outcome{code: code, message: questionGone, reason: "orphaned"}); err != nil {
				return err
			}
			continue
		}
		if err := h.approvals.KeepQuestions(t, turn); err != nil {
			return err
		}
		to := outcome{code: code, message: message, reason: "orphaned", leaveApprovals: true}
		if err := h.transition(t, &turn, domain.Interrupted, to); err != nil {
			return err
		}
	}
	return nil
}
