package hub

import (
	"cmp"
	"context"
	"sync"
	"time"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/conversation"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/store"
	"github.com/duet-rpc/duet-rpc/internal/threadsettings"
)

// schedule starts queued runs while slots are free: higher priority first, then in order of
// arrival, at most one run per thread. A run without an available executor waits for the next call.
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
		run := s.Run
		if err := h.startNow(t, &run); err != nil {
			return err
		}
	}
	return nil
}

// startable lists up to most runs that can start. A run without an available executor stays
// queued and does not block others.
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

// hasRoom reports whether an executor is available for a queued session.
func (h *Hub) hasRoom(s domain.Session) bool {
	agent, err := h.configured.Agent(s.Run.Agent)
	if err != nil {
		return true // start it, so that it fails with this error
	}
	return h.executors.HasRoom(leaseFor(s.Thread.UUID, agent))
}

// add stores a run in its thread and queues it unless it is a draft.
func (h *Hub) add(t store.Tx, run *domain.Run, thread domain.Thread, draft bool) error {
	if run.Source != domain.SourceDecision { // an answer is never refused
		if err := h.checkWorktree(t, thread); err != nil {
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
	if run.Parent == 0 {
		run.Parent = thread.ForkRun
		if last, err := t.LastRun(h.ctx, thread.ID); err == nil {
			run.Parent = last.ID
			if run.Mode == "" && last.Mode == thread.Mode {
				run.AgentMode = thread.AgentModeAfter(last)
			}
		}
	}
	run.Thread, run.State = thread.ID, domain.New
	if draft {
		run.State = domain.Draft
	}
	run.Agent = thread.Agent // a conversation keeps its agent
	run.Created, run.Active = t.Now(), t.Now()
	run.Mode = cmp.Or(run.Mode, thread.Mode)
	if run.Mode == catalog.ModePlan { // also a mode inherited from the thread
		if err := h.settings.Check(h.ctx, t, thread.ID, run.Agent, run.Mode, "", nil); err != nil {
			return err
		}
	}
	run.Title = cmp.Or(run.Title, thread.Title)
	if err := t.InsertRun(run); err != nil {
		return err
	}
	if draft {
		return nil
	}
	if err := h.gates.Follow(t, *run); err != nil {
		return err
	}
	return h.enqueue(t, run, thread)
}

// attach stores the attachments of a prompt. It fails if the agent is known not to accept them.
func (h *Hub) attach(t store.Tx, thread domain.Thread, list []domain.Content) error {
	reported, err := threadsettings.ReportedBy(h.ctx, t, thread.ID, thread.Agent)
	if err == nil {
		err = threadsettings.CheckContent(thread.Agent, reported, list)
	}
	if err != nil {
		return err
	}
	return conversation.Attach(t, list)
}

// checkRoom returns an error if the queue is full.
func (h *Hub) checkRoom(t store.Tx) error {
	counts, err := t.Load(h.ctx)
	if err != nil {
		return err
	}
	if counts[domain.Queued] >= h.opts.Limits.QueueCap {
		return domain.Errorf(domain.KindQueueFull, "the queue is full: %d runs wait; cancel some, wait, or raise limits.queue_cap", counts[domain.Queued])
	}
	return nil
}

// enqueue adds the user's prompt to the conversation and queues its run. It unarchives the
// conversation.
func (h *Hub) enqueue(t store.Tx, run *domain.Run, thread domain.Thread) error {
	archived := thread.Archived
	if archived {
		thread.Archived = false
		if err := t.UpdateThread(thread); err != nil {
			return err
		}
	}
	err := h.noteAnotherAgent(t, *run)
	if err != nil {
		return err
	}
	if run.Source == domain.SourceAgent {
		err = h.conversation.WentOn(t, *run, ownTurnOf(*run).trigger())
	} else {
		err = h.conversation.Prompt(t, *run, thread)
		h.environments.keep(t, run.ID, h.client)
		queued := *run
		t.AfterCommit(func() { h.yieldTo(queued) })
	}
	if err != nil {
		return err
	}
	arranged, err := h.arrangeBefore(t, run)
	if err != nil {
		return err
	}
	// The transition updates the thread's time.
	if err = h.transition(t, run, domain.Queued, outcome{}); err != nil {
		return err
	}
	if arranged {
		if err := h.announceQueue(t, *run, domain.QueueChanged{}); err != nil {
			return err
		}
	}
	if !archived {
		return nil
	}
	return h.announce(t, *run, domain.SettingsChanged{Archived: &thread.Archived, Reason: "continued"})
}

// noteAnotherAgent adds a notice that another agent continues the conversation.
func (h *Hub) noteAnotherAgent(t store.Tx, run domain.Run) error {
	if run.Parent == 0 {
		return nil
	}
	before, err := t.Run(h.ctx, run.Parent)
	if err != nil || before.Thread != run.Thread || before.Agent == run.Agent || before.Agent == "" {
		return err
	}
	return h.conversation.AnotherAgent(t, run, before.Agent)
}

// startQueue holds started runs that wait for execution.
type startQueue struct {
	due chan struct{} // holds a value when runs are waiting

	mu   sync.Mutex // guards runs
	runs []*liveRun
}

func newStartQueue() *startQueue { return &startQueue{due: make(chan struct{}, 1)} }

// add never blocks, because the store's writer calls it.
func (q *startQueue) add(live *liveRun) {
	q.mu.Lock()
	q.runs = append(q.runs, live)
	q.mu.Unlock()
	select {
	case q.due <- struct{}{}:
	default: // one value serves both
	}
}

// take returns all queued runs and empties the queue.
func (q *startQueue) take() []*liveRun {
	q.mu.Lock()
	defer q.mu.Unlock()
	runs := q.runs
	q.runs = nil
	return runs
}

// startNow starts a queued run, even without a free slot.
func (h *Hub) startNow(t store.Tx, run *domain.Run) error {
	token := h.tokens.Issue(t, *run)
	if err := h.transition(t, run, domain.Starting, outcome{}); err != nil {
		return err
	}
	h.start(t, *run, token)
	return nil
}

// start has a run executed when its transition to starting commits.
func (h *Hub) start(t store.Tx, run domain.Run, token string) {
	t.AfterCommit(func() {
		ctx, cancel := context.WithCancel(h.ctx)
		live := &liveRun{
			run: run, ctx: ctx, cancel: cancel, token: token, secrets: h.keys.Hold(run.Thread),
			ended: make(chan struct{}), answered: make(chan struct{}),
		}
		live.reports = h.intake.Begin(run.ID, run.UUID, live.secrets)
		h.mu.Lock()
		h.live[run.ID] = live
		h.mu.Unlock()
		h.toExecute.add(live)
	})
}

// clock ends a run whose time is up. It pauses while the run waits for a human.
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

// limitOf returns the time limit of a run.
func (h *Hub) limitOf(run domain.Run) time.Duration {
	if run.Timeout > 0 {
		return run.Timeout
	}
	return h.opts.Limits.TurnTimeout
}
