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

// Queued lists the turns that wait in a session, the next one first.
func (h *Hub) Queued(ctx context.Context, id string) ([]domain.TurnInSession, error) {
	s, err := h.query.Turn(ctx, id)
	if err != nil {
		return nil, err
	}
	list, err := h.store.TurnsInSessions(ctx,
		domain.TurnFilter{Session: s.Turn.Session, States: []domain.State{domain.Queued}})
	slices.SortFunc(list, func(a, b domain.TurnInSession) int { return byTurn(a.Turn, b.Turn) })
	return list, err
}

// byTurn orders queued turns of a session: the one that runs earlier is less.
func byTurn(a, b domain.Turn) int {
	return cmp.Or(cmp.Compare(b.Priority, a.Priority), cmp.Compare(a.Place, b.Place))
}

// queuedIn is Queued in a transaction.
func (h *Hub) queuedIn(t store.Tx, session int64) ([]domain.Turn, error) {
	turns, err := t.UnfinishedTurns(h.ctx, session)
	turns = slices.DeleteFunc(turns, func(r domain.Turn) bool { return r.State != domain.Queued })
	slices.SortFunc(turns, byTurn)
	return turns, err
}

// EditQueued changes the prompt of a queued turn and keeps its attachments.
func (h *Hub) EditQueued(ctx context.Context, id, prompt string) error {
	if strings.TrimSpace(prompt) == "" {
		return domain.Invalid("query", "a text that is not empty", "nothing")
	}
	return h.write(ctx, func(t store.Tx) error {
		turn, err := h.writtenAndQueued(t, id)
		if err != nil {
			return err
		}
		if _, err := h.configured.AgentFor(clientenv.IsRestricted(ctx), turn.Agent); err != nil {
			return err
		}
		clientenv.Carry(ctx, &turn)
		turn.Prompt = prompt
		if err := t.SetPrompt(turn.ID, turn.Prompt, turn.Content); err != nil {
			return err
		}
		if err := t.UpdateTurn(turn); err != nil {
			return err
		}
		text, truncated, err := h.transcript.EditPrompt(t, turn)
		if err != nil {
			return err
		}
		return h.announceQueue(t, turn, domain.QueueChanged{Text: &text, Truncated: truncated})
	})
}

// MoveQueued moves a queued turn before another queued turn of its session, or to the end if
// before is "". Turns that no client has written keep their places.
func (h *Hub) MoveQueued(ctx context.Context, id, before string) error {
	return h.write(ctx, func(t store.Tx) error {
		turn, err := h.writtenAndQueued(t, id)
		if err != nil {
			return err
		}
		var next domain.Turn
		if before != "" {
			if next, err = h.writtenAndQueued(t, before); err != nil {
				return err
			}
			if next.Session != turn.Session {
				return domain.Invalid("before", "a queued prompt of the same session", "one of another")
			}
		}
		queued, err := h.queuedIn(t, turn.Session)
		if err != nil {
			return err
		}
		if err := h.arrange(t, moved(queued, turn.ID, next.ID)); err != nil {
			return err
		}
		return h.announceQueue(t, turn, domain.QueueChanged{})
	})
}

// moved returns a queue with a turn moved before another turn, or to the end if before is 0. The places
// keep their priorities.
func moved(queued []domain.Turn, turn, before int64) []domain.Turn {
	var written []domain.Turn
	for _, r := range queued {
		if r.IsWritten() && r.ID != turn {
			written = append(written, r)
		}
	}
	at := len(written)
	if n := slices.IndexFunc(written, func(r domain.Turn) bool { return r.ID == before }); n >= 0 {
		at = n
	} else if before != 0 { // before itself
		return queued
	}
	of := slices.IndexFunc(queued, func(r domain.Turn) bool { return r.ID == turn })
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

// arrange orders the queued turns of a session as given, and updates them in place.
func (h *Hub) arrange(t store.Tx, queued []domain.Turn) error {
	first := slices.MinFunc(queued, func(a, b domain.Turn) int { return cmp.Compare(a.Place, b.Place) })
	var places []int64
	for _, turn := range queued {
		places = append(places, turn.Place)
	}
	slices.Sort(places)
	before := first.Parent
	for n := range queued {
		turn := &queued[n]
		turn.Place, turn.Parent = places[n], before
		before = turn.ID
		if err := t.SetPlace(*turn); err != nil {
			return err
		}
		h.query.Changed(t, turn.ID)
	}
	return nil
}

// arrangeBefore is arrange for a turn that is about to be queued before another one.
func (h *Hub) arrangeBefore(t store.Tx, turn *domain.Turn) (arranged bool, err error) {
	queued, err := h.queuedIn(t, turn.Session)
	if err != nil || len(queued) == 0 || byTurn(queued[len(queued)-1], *turn) < 0 {
		return false, err
	}
	queued = append(queued, *turn)
	slices.SortFunc(queued, byTurn)
	if err := h.arrange(t, queued); err != nil {
		return false, err
	}
	*turn = queued[slices.IndexFunc(queued, func(r domain.Turn) bool { return r.ID == turn.ID })]
	return true, nil
}

// writtenAndQueued returns a queued turn whose prompt may be edited.
func (h *Hub) writtenAndQueued(t store.Tx, id string) (domain.Turn, error) {
	turn, err := query.Find(h.ctx, t, id)
	switch {
	case err != nil:
		return turn, err
	case turn.State != domain.Queued:
		return turn, domain.Errorf(domain.KindBadState, "%s is %s: only a prompt that is queued can be changed",
			turn.Label(), turn.State.Words())
	case !turn.IsWritten():
		return turn, domain.Errorf(domain.KindBadState,
			"%s has no prompt that a client has written: it can be cancelled, but not changed",
			turn.Label())
	}
	return turn, nil
}

// announceQueue adds a queue change to the log, with the resulting order.
func (h *Hub) announceQueue(t store.Tx, turn domain.Turn, p domain.QueueChanged) error {
	queued, err := h.queuedIn(t, turn.Session)
	if err != nil {
		return err
	}
	p.Order = make([]string, 0, len(queued))
	for _, r := range queued {
		p.Order = append(p.Order, r.HumanLayerSession)
	}
	h.query.Changed(t, turn.ID)
	return h.announce(t, turn, p)
}

// Steer sends a message to the agent that works in a turn's session, in the middle of its
// turn. It returns the session that received the message. injected is false, and nothing has
// changed, if no agent works there or the agent does not accept messages.
func (h *Hub) Steer(ctx context.Context, id, text string) (s domain.TurnInSession, injected bool, err error) {
	named, err := h.query.Turn(ctx, id)
	if err != nil {
		return s, false, err
	}
	live := h.liveIn(named.Turn.Session)
	if live == nil || clientenv.IsRestricted(ctx) && !live.turn.Restricted { // a restricted client may not use an agent of the project's file
		return s, false, nil
	}
	h.mu.Lock()
	lease := live.lease
	h.mu.Unlock()
	if lease == nil { // starting
		return s, false, nil
	}
	result, err := lease.Steer(ctx, catalog.SteerParams{TaskID: live.turn.UUID, Text: text})
	if err != nil || result.Outcome != catalog.SteerInjected {
		h.log.Debug("the agent did not accept a message during its turn", "turn", live.turn.UUID, "err", err)
		return s, false, ctx.Err()
	}
	h.intake.EndMessage(ctx, live.turn.ID)
	if err := h.write(ctx, func(store.Tx) error { return nil }); err != nil { // waits until the message is committed
		return s, true, err
	}
	s, err = h.query.ByTurn(ctx, live.turn.ID)
	return s, true, err
}

// liveIn returns the active turn of a session, or nil.
func (h *Hub) liveIn(session int64) *liveTurn {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, live := range h.live {
		if live.turn.Session == session {
			return live
		}
	}
	return nil
}
