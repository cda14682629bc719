package hub

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/clientenv"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/query"
	"github.com/duet-rpc/duet-rpc/internal/store"
)

// Queued lists the runs that wait in a session's conversation, the next one first.
func (h *Hub) Queued(ctx context.Context, id string) ([]domain.Session, error) {
	s, err := h.query.Session(ctx, id)
	if err != nil {
		return nil, err
	}
	list, err := h.store.Sessions(ctx, domain.RunFilter{Thread: s.Run.Thread, States: []domain.State{domain.Queued}})
	slices.SortFunc(list, func(a, b domain.Session) int { return byTurn(a.Run, b.Run) })
	return list, err
}

// byTurn orders queued runs of a conversation: the one that runs earlier is less.
func byTurn(a, b domain.Run) int {
	return cmp.Or(cmp.Compare(b.Priority, a.Priority), cmp.Compare(a.Place, b.Place))
}

// queuedIn is Queued in a transaction.
func (h *Hub) queuedIn(t store.Tx, thread int64) ([]domain.Run, error) {
	runs, err := t.UnfinishedRuns(h.ctx, thread)
	runs = slices.DeleteFunc(runs, func(r domain.Run) bool { return r.State != domain.Queued })
	slices.SortFunc(runs, byTurn)
	return runs, err
}

// EditQueued changes the prompt of a queued run and keeps its attachments.
func (h *Hub) EditQueued(ctx context.Context, id, prompt string) error {
	if strings.TrimSpace(prompt) == "" {
		return domain.Invalid("query", "a text that is not empty", "nothing")
	}
	return h.write(ctx, func(t store.Tx) error {
		run, err := h.writtenAndQueued(t, id)
		if err != nil {
			return err
		}
		if _, err := h.configured.AgentFor(clientenv.IsRestricted(ctx), run.Agent); err != nil {
			return err
		}
		clientenv.Carry(ctx, &run)
		run.Prompt = prompt
		if err := t.SetPrompt(run.ID, run.Prompt, run.Content); err != nil {
			return err
		}
		if err := t.UpdateRun(run); err != nil {
			return err
		}
		text, truncated, err := h.conversation.EditPrompt(t, run)
		if err != nil {
			return err
		}
		return h.announceQueue(t, run, domain.QueueChanged{Text: &text, Truncated: truncated})
	})
}

// MoveQueued moves a queued run before another queued run of its conversation, or to the end if
// before is "". Runs that no client has written keep their places.
func (h *Hub) MoveQueued(ctx context.Context, id, before string) error {
	return h.write(ctx, func(t store.Tx) error {
		run, err := h.writtenAndQueued(t, id)
		if err != nil {
			return err
		}
		var next domain.Run
		if before != "" {
			if next, err = h.writtenAndQueued(t, before); err != nil {
				return err
			}
			if next.Thread != run.Thread {
				return domain.Invalid("before", "a queued prompt of the same conversation", "one of another")
			}
		}
		queued, err := h.queuedIn(t, run.Thread)
		if err != nil {
			return err
		}
		if err := h.arrange(t, moved(queued, run.ID, next.ID)); err != nil {
			return err
		}
		return h.announceQueue(t, run, domain.QueueChanged{})
	})
}

// moved returns a queue with run moved before another run, or to the end if before is 0. The places
// keep their priorities.
func moved(queued []domain.Run, run, before int64) []domain.Run {
	var written []domain.Run
	for _, r := range queued {
		if r.IsWritten() && r.ID != run {
			written = append(written, r)
		}
	}
	at := len(written)
	if n := slices.IndexFunc(written, func(r domain.Run) bool { return r.ID == before }); n >= 0 {
		at = n
	} else if before != 0 { // before itself
		return queued
	}
	of := slices.IndexFunc(queued, func(r domain.Run) bool { return r.ID == run })
	written = slices.Insert(written, at, queued[of])
	list := slices.Clone(queued)
	for n, r := range queued {
		if r.IsWritten() {
			list[n], written = written[0], written[1:]
			list[n].Priority = r.Priority
		}
	}
	return list
}

// arrange orders the queued runs of a conversation as given, and updates them in place.
func (h *Hub) arrange(t store.Tx, queued []domain.Run) error {
	first := slices.MinFunc(queued, func(a, b domain.Run) int { return cmp.Compare(a.Place, b.Place) })
	var places []int64
	for _, run := range queued {
		places = append(places, run.Place)
	}
	slices.Sort(places)
	before := first.Parent
	for n := range queued {
		run := &queued[n]
		run.Place, run.Parent = places[n], before
		before = run.ID
		if err := t.SetPlace(*run); err != nil {
			return err
		}
		h.query.Changed(t, run.ID)
	}
	return nil
}

// arrangeBefore is arrange for a run that is about to be queued before another one.
func (h *Hub) arrangeBefore(t store.Tx, run *domain.Run) (arranged bool, err error) {
	queued, err := h.queuedIn(t, run.Thread)
	if err != nil || len(queued) == 0 || byTurn(queued[len(queued)-1], *run) < 0 {
		return false, err
	}
	queued = append(queued, *run)
	slices.SortFunc(queued, byTurn)
	if err := h.arrange(t, queued); err != nil {
		return false, err
	}
	*run = queued[slices.IndexFunc(queued, func(r domain.Run) bool { return r.ID == run.ID })]
	return true, nil
}

// writtenAndQueued returns a queued run whose prompt may be edited.
func (h *Hub) writtenAndQueued(t store.Tx, id string) (domain.Run, error) {
	run, err := query.Find(h.ctx, t, id)
	switch {
	case err != nil:
		return run, err
	case run.State != domain.Queued:
		return run, domain.Errorf(domain.KindBadState, "%s is %s: only a prompt that is queued can be changed", domain.TaskName(run.Task), run.State.Words())
	case !run.IsWritten():
		return run, domain.Errorf(domain.KindBadState, "%s has no prompt that a client has written: it can be cancelled, but not changed", domain.TaskName(run.Task))
	}
	return run, nil
}

// announceQueue adds a queue change to the log, with the resulting order.
func (h *Hub) announceQueue(t store.Tx, run domain.Run, p domain.QueueChanged) error {
	queued, err := h.queuedIn(t, run.Thread)
	if err != nil {
		return err
	}
	p.Order = make([]string, 0, len(queued))
	for _, r := range queued {
		p.Order = append(p.Order, r.SessionID)
	}
	h.query.Changed(t, run.ID)
	return h.announce(t, run, p)
}

// Steer sends a message to the agent that works in a run's conversation, in the middle of its
// turn. It returns the session that received the message. injected is false, and nothing has
// changed, if no agent works there or the agent does not accept messages.
func (h *Hub) Steer(ctx context.Context, id, text string) (s domain.Session, injected bool, err error) {
	named, err := h.query.Session(ctx, id)
	if err != nil {
		return s, false, err
	}
	live := h.liveIn(named.Run.Thread)
	if live == nil || clientenv.IsRestricted(ctx) && !live.run.Restricted { // a restricted client may not use an agent of the project's file
		return s, false, nil
	}
	h.mu.Lock()
	lease := live.lease
	h.mu.Unlock()
	if lease == nil { // starting
		return s, false, nil
	}
	result, err := lease.Steer(ctx, catalog.SteerParams{TaskID: live.run.UUID, Text: text})
	if err != nil || result.Outcome != catalog.SteerInjected {
		h.log.Debug("the agent did not accept a message during its turn", "run", live.run.UUID, "err", err)
		return s, false, ctx.Err()
	}
	h.intake.EndMessage(ctx, live.run.ID)
	if err := h.write(ctx, func(store.Tx) error { return nil }); err != nil { // waits until the message is committed
		return s, true, err
	}
	s, err = h.query.ByRun(ctx, live.run.ID)
	return s, true, err
}

// liveIn returns the active run of a conversation, or nil.
func (h *Hub) liveIn(thread int64) *liveRun {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, live := range h.live {
		if live.run.Thread == thread {
			return live
		}
	}
	return nil
}
