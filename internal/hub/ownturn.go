package hub

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/store"
)

// ownTurns starts agent-initiated turns.
type ownTurns struct{ hub *Hub }

var (
	errOthersTask   = errors.New("the task is not part of that session")
	errAnotherAgent = errors.New("another agent continues that session")
)

// BeginTurn starts a turn for an agent-initiated turn. It waits until no other turn of the
// session is active. If prompts are queued there, BeginTurn starts the next one instead, and
// the agent's output belongs to it. Neither waits for a slot, because the agent is already working.
func (f ownTurns) BeginTurn(ctx context.Context, p catalog.BeginTurnParams) (catalog.BeginTurnResult, error) {
	h := f.hub
	var waited domain.Turn // for its end
	for {
		var begun domain.Turn
		var before <-chan struct{}
		err := h.write(ctx, func(t store.Tx) error {
			session, last, err := h.sessionOf(t, p.SessionID, p.TaskID)
			if err != nil {
				return err
			}
			if waited.ID != 0 && waited.UUID != p.TaskID { // a prompt started first, and its turn got the agent's output
				if begun, err = t.Turn(h.ctx, waited.ID); err != nil || begun.State == domain.Completed {
					return err
				}
			}
			if waited, before, err = h.turnsIn(t, session.ID); err != nil || before != nil {
				return err
			}
			queued, err := h.queuedIn(t, session.ID)
			if err != nil {
				return err
			}
			if len(queued) > 0 {
				if begun = queued[0]; h.isClosing() {
					return domain.ErrEnding
				}
				return h.startNow(t, &begun)
			}
			begun = following(session, last, "", session.Agent)
			begun.Source, begun.Restricted = domain.SourceAgent, last.Restricted
			if begun.Metadata, err = ownTurnAfter(last, p.Trigger); err != nil {
				return err
			}
			return h.addStarted(t, &begun, session)
		})
		if err != nil || before == nil {
			return catalog.BeginTurnResult{TaskID: begun.UUID}, err
		}
		select {
		case <-before:
		case <-ctx.Done():
			return catalog.BeginTurnResult{}, ctx.Err()
		case <-h.ctx.Done():
			return catalog.BeginTurnResult{}, domain.ErrEnding
		}
	}
}

// ownTurn is the metadata of an agent-initiated turn. It keeps the configured trigger of the
// previous turn, so that triggers do not loop.
type ownTurn struct {
	Trigger    *catalog.TurnTrigger `json:"turn_trigger,omitempty"`
	Configured string               `json:"trigger,omitempty"`
	Depth      int                  `json:"trigger_depth,omitempty"`
}

// ownTurnAfter returns the metadata of an agent-initiated turn that follows another turn.
func ownTurnAfter(before domain.Turn, trigger *catalog.TurnTrigger) (json.RawMessage, error) {
	var own ownTurn
	if before.Source == domain.SourceTrigger || before.Source == domain.SourceAgent {
		own = ownTurnOf(before)
	}
	own.Trigger = nil // the previous turn has its own
	if trigger != nil {
		own.Trigger = &catalog.TurnTrigger{Kind: cutTrigger(trigger.Kind), Label: cutTrigger(trigger.Label)}
	}
	return json.Marshal(own)
}

// maxTrigger limits each text of a trigger, in bytes, for lists and messages.
const maxTrigger = 500

func cutTrigger(text string) string {
	if len(text) > maxTrigger {
		text = strings.ToValidUTF8(text[:maxTrigger], "") + "…"
	}
	return text
}

func ownTurnOf(turn domain.Turn) (own ownTurn) {
	if len(turn.Metadata) > 0 {
		_ = json.Unmarshal(turn.Metadata, &own) // zero for other metadata
	}
	return own
}

func (o ownTurn) trigger() domain.TurnTrigger {
	if o.Trigger == nil {
		return domain.TurnTrigger{}
	}
	return domain.TurnTrigger(*o.Trigger)
}

// sessionOf returns the session that an executor names, with its last turn. task is
// the agent's latest task there.
func (h *Hub) sessionOf(
	t store.Tx, sessionUUID, task string,
) (session domain.Session, last domain.Turn, err error) {
	id, err := t.Find(h.ctx, task)
	if err != nil {
		return session, last, err
	}
	turn, err := t.Turn(h.ctx, id)
	if err != nil {
		return session, last, err
	}
	if session, err = t.Session(h.ctx, turn.Session); err != nil {
		return session, last, err
	}
	switch {
	case turn.UUID != task || session.UUID != sessionUUID:
		return session, last, errOthersTask
	case session.Agent != turn.Agent:
		return session, last, errAnotherAgent
	}
	last, err = t.LastTurn(h.ctx, session.ID)
	return session, last, err
}

// turnsIn returns the session's active turn, and a channel that is closed when it has ended,
// or nil if there is none.
func (h *Hub) turnsIn(t store.Tx, session int64) (turn domain.Turn, ended <-chan struct{}, err error) {
	active, err := t.TurnsIn(h.ctx, domain.Starting, domain.Running, domain.WaitingInput, domain.Interrupting)
	if err != nil {
		return turn, nil, err
	}
	for _, turn := range active {
		if turn.Session != session || turn.IsQuestion() {
			continue
		}
		if live := h.liveTurn(turn.ID); live != nil {
			return turn, live.ended, nil
		}
		kept := make(chan struct{}) // an uncommitted change starts it
		t.AfterCommit(func() { close(kept) })
		return turn, kept, nil
	}
	return domain.Turn{}, nil, nil
}

// askAgain is how long the hub waits for an executor to begin a turn that is to yield.
const askAgain = 100 * time.Millisecond

// yieldTo ends the agent-initiated turn that is active in the session of a queued prompt, if
// the agent accepts a prompt while it works. Otherwise the prompt waits.
func (h *Hub) yieldTo(queued domain.Turn) {
	live := h.liveIn(queued.Session)
	if live == nil || live.turn.Source != domain.SourceAgent || live.turn.Agent != queued.Agent {
		return
	}
	h.active.Go(func() { h.yield(live) })
}

func (h *Hub) yield(live *liveTurn) {
	for {
		h.mu.Lock()
		lease := live.lease
		h.mu.Unlock()
		if lease != nil {
			r, err := lease.YieldTurn(live.ctx, catalog.YieldTurnParams{TaskID: live.turn.UUID})
			if err != nil || r.Outcome != catalog.YieldUnknown {
				return
			}
		}
		select {
		case <-time.After(askAgain):
		case <-live.answered:
			return
		case <-h.ctx.Done():
			return
		}
	}
}

// goneOnAfter returns the active agent-initiated turn that follows an ended turn, or the ended turn if
// none does.
func (h *Hub) goneOnAfter(t store.Tx, turn domain.Turn) (domain.Turn, error) {
	last, err := t.LastTurn(h.ctx, turn.Session)
	if err != nil { // a session of drafts has no last turn
		return turn, nil
	}
	for now := last; now.Source == domain.SourceAgent && now.Place > turn.Place; {
		if now.State.Active() {
			return now, nil
		}
		if now, err = t.Turn(h.ctx, now.Parent); err != nil {
			return turn, err
		}
	}
	return turn, nil
}

// rests returns an error of domain.KindBadState if the agent of a session goes on by itself: it
// has background work, or an agent-initiated turn. Such a session would come back from the
// archive, and its agent would work on, and cost money, after it is deleted.
func (h *Hub) rests(t store.Tx, session int64) error {
	last, err := t.LastTurn(h.ctx, session)
	if errors.Is(err, store.ErrNotFound) { // a session of drafts
		return nil
	}
	if err != nil {
		return err
	}
	if last.Source == domain.SourceAgent && last.State.Active() {
		return domain.Errorf(domain.KindBadState,
			"its agent goes on by itself in %[1]s: end that first, with `duet-rpc session interrupt %[1]s`",
			last.Label())
	}
	var titles []string
	for _, b := range h.intake.Background(session) {
		titles = append(titles, cmp.Or(b.Title, b.Kind))
	}
	if len(titles) == 0 {
		return nil
	}
	return domain.Errorf(domain.KindBadState,
		"its agent works in the background (%s): end that first, with `duet-rpc session interrupt %s`",
		strings.Join(titles, ", "), last.Label())
}

// isLast reports whether a turn is the last of its session, not counting agent-initiated
// turns.
func (h *Hub) isLast(t store.Tx, turn, last domain.Turn) (bool, error) {
	for last.Place > turn.Place && last.Source == domain.SourceAgent {
		var err error
		if last, err = t.Turn(h.ctx, last.Parent); err != nil {
			return false, err
		}
	}
	return last.ID == turn.ID, nil
}

// addStarted inserts a turn and starts it at once.
func (h *Hub) addStarted(t store.Tx, turn *domain.Turn, session domain.Session) error {
	turn.Session, turn.State, turn.Agent, turn.Title = session.ID, domain.New, session.Agent, session.Title
	turn.Created, turn.Active = t.Now(), t.Now()
	if err := t.InsertTurn(turn); err != nil {
		return err
	}
	if err := h.enqueue(t, turn, session); err != nil {
		return err
	}
	return h.startNow(t, turn)
}
