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

// ownTurns starts runs for agent-initiated turns.
type ownTurns struct{ hub *Hub }

var (
	errOthersTask   = errors.New("the task is not part of that conversation")
	errAnotherAgent = errors.New("another agent continues that conversation")
)

// BeginTurn starts a run for an agent-initiated turn. It waits until no other run of the
// conversation is active. If prompts are queued there, BeginTurn starts the next one instead, and
// the agent's output belongs to it. Neither waits for a slot, because the agent is already working.
func (f ownTurns) BeginTurn(ctx context.Context, p catalog.BeginTurnParams) (catalog.BeginTurnResult, error) {
	h := f.hub
	var waited domain.Run // for its end
	for {
		var begun domain.Run
		var before <-chan struct{}
		err := h.write(ctx, func(t store.Tx) error {
			thread, last, err := h.conversationOf(t, p.SessionID, p.TaskID)
			if err != nil {
				return err
			}
			if waited.ID != 0 && waited.UUID != p.TaskID { // a prompt started first, and its run got the agent's output
				if begun, err = t.Run(h.ctx, waited.ID); err != nil || begun.State == domain.Completed {
					return err
				}
			}
			if waited, before, err = h.runsIn(t, thread.ID); err != nil || before != nil {
				return err
			}
			queued, err := h.queuedIn(t, thread.ID)
			if err != nil {
				return err
			}
			if len(queued) > 0 {
				if begun = queued[0]; h.isClosing() {
					return domain.ErrEnding
				}
				return h.startNow(t, &begun)
			}
			begun = following(thread, last, "", thread.Agent)
			begun.Source, begun.Restricted = domain.SourceAgent, last.Restricted
			if begun.Metadata, err = ownTurnAfter(last, p.Trigger); err != nil {
				return err
			}
			return h.addStarted(t, &begun, thread)
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

// ownTurn is the metadata of an agent-initiated run. It keeps the configured trigger of the
// previous run, so that triggers do not loop.
type ownTurn struct {
	Trigger    *catalog.TurnTrigger `json:"turn_trigger,omitempty"`
	Configured string               `json:"trigger,omitempty"`
	Depth      int                  `json:"trigger_depth,omitempty"`
}

// ownTurnAfter returns the metadata of an agent-initiated run that follows another run.
func ownTurnAfter(before domain.Run, trigger *catalog.TurnTrigger) (json.RawMessage, error) {
	var own ownTurn
	if before.Source == domain.SourceTrigger || before.Source == domain.SourceAgent {
		own = ownTurnOf(before)
	}
	own.Trigger = nil // the previous run has its own
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

func ownTurnOf(run domain.Run) (own ownTurn) {
	if len(run.Metadata) > 0 {
		_ = json.Unmarshal(run.Metadata, &own) // zero for other metadata
	}
	return own
}

func (o ownTurn) trigger() domain.TurnTrigger {
	if o.Trigger == nil {
		return domain.TurnTrigger{}
	}
	return domain.TurnTrigger(*o.Trigger)
}

// conversationOf returns the conversation that an executor names, with its last run. task is
// the agent's latest task there.
func (h *Hub) conversationOf(t store.Tx, conversation, task string) (thread domain.Thread, last domain.Run, err error) {
	id, err := t.Find(h.ctx, task)
	if err != nil {
		return thread, last, err
	}
	run, err := t.Run(h.ctx, id)
	if err != nil {
		return thread, last, err
	}
	if thread, err = t.Thread(h.ctx, run.Thread); err != nil {
		return thread, last, err
	}
	switch {
	case run.UUID != task || thread.UUID != conversation:
		return thread, last, errOthersTask
	case thread.Agent != run.Agent:
		return thread, last, errAnotherAgent
	}
	last, err = t.LastRun(h.ctx, thread.ID)
	return thread, last, err
}

// runsIn returns the conversation's active run, and a channel that is closed when it has ended,
// or nil if there is none.
func (h *Hub) runsIn(t store.Tx, thread int64) (run domain.Run, ended <-chan struct{}, err error) {
	active, err := t.RunsIn(h.ctx, domain.Starting, domain.Running, domain.WaitingInput, domain.Interrupting)
	if err != nil {
		return run, nil, err
	}
	for _, run := range active {
		if run.Thread != thread || run.IsQuestion() {
			continue
		}
		if live := h.liveRun(run.ID); live != nil {
			return run, live.ended, nil
		}
		kept := make(chan struct{}) // an uncommitted change starts it
		t.AfterCommit(func() { close(kept) })
		return run, kept, nil
	}
	return domain.Run{}, nil, nil
}

// askAgain is how long the hub waits for an executor to begin a run that is to yield.
const askAgain = 100 * time.Millisecond

// yieldTo ends the agent-initiated run that is active in the conversation of a queued prompt, if
// the agent accepts a prompt while it works. Otherwise the prompt waits.
func (h *Hub) yieldTo(queued domain.Run) {
	live := h.liveIn(queued.Thread)
	if live == nil || live.run.Source != domain.SourceAgent || live.run.Agent != queued.Agent {
		return
	}
	h.active.Go(func() { h.yield(live) })
}

func (h *Hub) yield(live *liveRun) {
	for {
		h.mu.Lock()
		lease := live.lease
		h.mu.Unlock()
		if lease != nil {
			r, err := lease.YieldTurn(live.ctx, catalog.YieldTurnParams{TaskID: live.run.UUID})
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

// goneOnAfter returns the active agent-initiated run that follows an ended run, or the ended run if
// none does.
func (h *Hub) goneOnAfter(t store.Tx, run domain.Run) (domain.Run, error) {
	last, err := t.LastRun(h.ctx, run.Thread)
	if err != nil { // a conversation of drafts has no last run
		return run, nil
	}
	for now := last; now.Source == domain.SourceAgent && now.Place > run.Place; {
		if now.State.Active() {
			return now, nil
		}
		if now, err = t.Run(h.ctx, now.Parent); err != nil {
			return run, err
		}
	}
	return run, nil
}

// rests returns an error of domain.KindBadState if the agent of a conversation goes on by itself: it
// has background work, or an agent-initiated run. Such a conversation would come back from the
// archive, and its agent would work on, and cost money, after it is deleted.
func (h *Hub) rests(t store.Tx, thread int64) error {
	last, err := t.LastRun(h.ctx, thread)
	if errors.Is(err, store.ErrNotFound) { // a conversation of drafts
		return nil
	}
	if err != nil {
		return err
	}
	if last.Source == domain.SourceAgent && last.State.Active() {
		return domain.Errorf(domain.KindBadState, "its agent goes on by itself in %[1]s: end that first, with `duet-rpc session interrupt %[1]s`", domain.TaskName(last.Task))
	}
	var titles []string
	for _, b := range h.intake.Background(thread) {
		titles = append(titles, cmp.Or(b.Title, b.Kind))
	}
	if len(titles) == 0 {
		return nil
	}
	return domain.Errorf(domain.KindBadState, "its agent works in the background (%s): end that first, with `duet-rpc session interrupt %s`", strings.Join(titles, ", "), domain.TaskName(last.Task))
}

// isLast reports whether a run is the last of its conversation, not counting agent-initiated
// runs.
func (h *Hub) isLast(t store.Tx, run, last domain.Run) (bool, error) {
	for last.Place > run.Place && last.Source == domain.SourceAgent {
		var err error
		if last, err = t.Run(h.ctx, last.Parent); err != nil {
			return false, err
		}
	}
	return last.ID == run.ID, nil
}

// addStarted inserts a run and starts it at once.
func (h *Hub) addStarted(t store.Tx, run *domain.Run, thread domain.Thread) error {
	run.Thread, run.State, run.Agent, run.Title = thread.ID, domain.New, thread.Agent, thread.Title
	run.Created, run.Active = t.Now(), t.Now()
	if err := t.InsertRun(run); err != nil {
		return err
	}
	if err := h.enqueue(t, run, thread); err != nil {
		return err
	}
	return h.startNow(t, run)
}
