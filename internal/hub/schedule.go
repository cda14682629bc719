package hub

import (
	"cmp"
	"context"
	"sync"
	"time"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/sessionsettings"
	"github.com/duet-rpc/duet-rpc/internal/store"
	"github.com/duet-rpc/duet-rpc/internal/transcript"
)

// schedule starts queued turns while slots are free: higher priority first, then in order of
// arrival, at most one turn per session. A turn without an available executor waits for the next call.
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
	if counts[domain.Queued] == 0 || busy >= h.opts.Limits.MaxTurns {
		return nil
	}
	next, err := h.startable(t, h.opts.Limits.MaxTurns-busy)
	if err != nil {
		return err
	}
	for _, s := range next {
		turn := s.Turn
		if err := h.startNow(t, &turn); err != nil {
			return err
		}
	}
	return nil
}

// startable lists up to most turns that can start. A turn without an available executor stays
// queued and does not block others.
func (h *Hub) startable(t store.Tx, most int) ([]domain.TurnInSession, error) {
	for limit := most; ; limit *= 4 {
		queued, err := t.Startable(h.ctx, limit)
		if err != nil {
			return nil, err
		}
		next := make([]domain.TurnInSession, 0, most)
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

// hasRoom reports whether an executor is available for a queued session.
func (h *Hub) hasRoom(s domain.TurnInSession) bool {
	agent, err := h.configured.Agent(s.Turn.Agent)
	if err != nil {
		return true // start it, so that it fails with this error
	}
	return h.executors.HasRoom(leaseFor(s.Session.UUID, agent))
}

// add stores a turn in its session and queues it unless it is a draft.
func (h *Hub) add(t store.Tx, turn *domain.Turn, session domain.Session, draft bool) error {
	if turn.Source != domain.SourceDecision { // an answer is never refused
		if err := h.checkWorktree(t, session); err != nil {
			return err
		}
		if err := h.checkRoom(t); err != nil {
			return err
		}
		if !draft {
			if err := h.budget.Admit(t); err != nil {
				return err
			}
		}
	}
	if turn.Parent == 0 {
		turn.Parent = session.ForkTurn
		if last, err := t.LastTurn(h.ctx, session.ID); err == nil {
			turn.Parent = last.ID
			if turn.Mode == "" && last.Mode == session.Mode {
				turn.AgentMode = session.AgentModeAfter(last)
			}
		}
	}
	turn.Session, turn.State = session.ID, domain.New
	if draft {
		turn.State = domain.Draft
	}
	turn.Agent = session.Agent // a session keeps its agent
	turn.Created, turn.Active = t.Now(), t.Now()
	turn.Mode = cmp.Or(turn.Mode, session.Mode)
	if turn.Mode == catalog.ModePlan { // also a mode inherited from the session
		if err := h.settings.Check(h.ctx, t, session.ID, turn.Agent, turn.Mode, "", nil); err != nil {
			return err
		}
	}
	turn.Title = cmp.Or(turn.Title, session.Title)
	if err := t.InsertTurn(turn); err != nil {
		return err
	}
	if draft {
		return nil
	}
	if err := h.gates.Follow(t, *turn); err != nil {
		return err
	}
	return h.enqueue(t, turn, session)
}

// attach stores the attachments of a prompt. It fails if the agent is known not to accept them.
func (h *Hub) attach(t store.Tx, session domain.Session, list []domain.Content) error {
	reported, err := sessionsettings.ReportedBy(h.ctx, t, session.ID, session.Agent)
	if err == nil {
		err = sessionsettings.CheckContent(session.Agent, reported, list)
	}
	if err != nil {
		return err
	}
	return transcript.Attach(t, list)
}

// checkRoom returns an error if the queue is full.
func (h *Hub) checkRoom(t store.Tx) error {
	counts, err := t.Load(h.ctx)
	if err != nil {
		return err
	}
	if counts[domain.Queued] >= h.opts.Limits.QueueCap {
		return domain.Errorf(domain.KindQueueFull,
			"the queue is full: %d turns wait; cancel some, wait, or raise limits.queue_cap", counts[domain.Queued])
	}
	return nil
}

// enqueue adds the user's prompt to the session and queues its turn. It unarchives the
// session.
func (h *Hub) enqueue(t store.Tx, turn *domain.Turn, session domain.Session) error {
	archived := session.Archived
	if archived {
		session.Archived = false
		if err := t.UpdateSession(session); err != nil {
			return err
		}
	}
	err := h.noteAnotherAgent(t, *turn)
	if err != nil {
		return err
	}
	if turn.Source == domain.SourceAgent {
		err = h.transcript.WentOn(t, *turn, ownTurnOf(*turn).trigger())
	} else {
		err = h.transcript.Prompt(t, *turn, session)
		h.environments.keep(t, turn.ID, h.client)
		queued := *turn
		t.AfterCommit(func() { h.yieldTo(queued) })
	}
	if err != nil {
		return err
	}
	arranged, err := h.arrangeBefore(t, turn)
	if err != nil {
		return err
	}
	// The transition updates the session's time.
	if err = h.transition(t, turn, domain.Queued, outcome{}); err != nil {
		return err
	}
	if arranged {
		if err := h.announceQueue(t, *turn, domain.QueueChanged{}); err != nil {
			return err
		}
	}
	if !archived {
		return nil
	}
	return h.announce(t, *turn, domain.SettingsChanged{Archived: &session.Archived, Reason: "continued"})
}

// noteAnotherAgent adds a notice that another agent continues the session.
func (h *Hub) noteAnotherAgent(t store.Tx, turn domain.Turn) error {
	if turn.Parent == 0 {
		return nil
	}
	before, err := t.Turn(h.ctx, turn.Parent)
	if err != nil || before.Session != turn.Session || before.Agent == turn.Agent || before.Agent == "" {
		return err
	}
	return h.transcript.AnotherAgent(t, turn, before.Agent)
}

// startQueue holds started turns that wait for execution.
type startQueue struct {
	due chan struct{} // holds a value when turns are waiting

	mu    sync.Mutex // guards turns
	turns []*liveTurn
}

func newStartQueue() *startQueue { return &startQueue{due: make(chan struct{}, 1)} }

// add never blocks, because the store's writer calls it.
func (q *startQueue) add(live *liveTurn) {
	q.mu.Lock()
	q.turns = append(q.turns, live)
	q.mu.Unlock()
	select {
	case q.due <- struct{}{}:
	default: // one value serves both
	}
}

// take returns all queued turns and empties the queue.
func (q *startQueue) take() []*liveTurn {
	q.mu.Lock()
	defer q.mu.Unlock()
	turns := q.turns
	q.turns = nil
	return turns
}

// startNow starts a queued turn, even without a free slot.
func (h *Hub) startNow(t store.Tx, turn *domain.Turn) error {
	token := h.tokens.Issue(t, *turn)
	if err := h.transition(t, turn, domain.Starting, outcome{}); err != nil {
		return err
	}
	h.start(t, *turn, token)
	return nil
}

// start has a turn executed when its transition to starting commits.
func (h *Hub) start(t store.Tx, turn domain.Turn, token string) {
	t.AfterCommit(func() {
		ctx, cancel := context.WithCancel(h.ctx)
		live := &liveTurn{
			turn: turn, ctx: ctx, cancel: cancel, token: token, secrets: h.keys.Hold(turn.Session),
			ended: make(chan struct{}), answered: make(chan struct{}),
		}
		live.reports = h.intake.Begin(turn.ID, turn.UUID, live.secrets)
		h.mu.Lock()
		h.live[turn.ID] = live
		h.mu.Unlock()
		h.toExecute.add(live)
	})
}

// clock ends a turn whose time is up. It pauses while the turn waits for a human.
type clock struct {
	timer *time.Timer
	left  time.Duration
	since time.Time
}

func newClock(limit time.Duration, expired func()) *clock {
	return &clock{timer: time.AfterFunc(limit, expired), left: limit, since: time.Now()}
}

func (c *clock) stop() {
	if c != nil {
		c.timer.Stop()
	}
}

func (c *clock) pause() {
	if c != nil && c.timer.Stop() {
		c.left -= time.Since(c.since)
	}
}

func (c *clock) resume() {
	if c != nil {
		c.since = time.Now()
		c.timer.Reset(max(c.left, time.Second))
	}
}

// limitOf returns the time limit of a turn.
func (h *Hub) limitOf(turn domain.Turn) time.Duration {
	if turn.Timeout > 0 {
		return turn.Timeout
	}
	return h.opts.Limits.TurnTimeout
}
