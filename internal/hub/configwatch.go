package hub

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"sync"
	"time"

	"github.com/duet-rpc/duet-rpc/internal/background"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/store"
)

// This file follows configuration changes while agents are running. Open questions are matched
// against new rules. If the user revokes trust in the project's file, the hub ends the agents that
// it defines.
//
// New questions and turns read the current configuration anyway; this is for earlier ones. The
// system notifies the hub of changes where it can. Without agents, the hub checks nothing.

// ConfigChanges reports changes of the configuration, see config.Live.
type ConfigChanges interface {
	// Generation returns a number that differs whenever the configuration may have changed.
	Generation() uint64
	// Revoked reports whether the user no longer trusts any version of the project's file.
	Revoked() bool
	// Watch signals changed whenever Generation or Revoked may have changed, until stop is called.
	// changed is closed when the system can no longer notify, and nil if it never could.
	Watch() (changed <-chan struct{}, stop func())
}

// configWatchOptions configure a [configWatch]. All but Logger are required. One goroutine calls
// the functions.
type configWatchOptions struct {
	Changes ConfigChanges
	// HasExecutors reports whether any executor is running. An agent may then outlast its turns: one
	// with programs in terminals is not ended for being idle.
	HasExecutors func() bool
	// RulesChanged is called after the configuration has changed. If it fails, it is retried after
	// a moment.
	RulesChanged func(context.Context) error
	// TrustRevoked ends the agents that the project's file defines, active or idle. If it fails, it
	// is retried after a moment.
	TrustRevoked func(context.Context, []changedAgent) error
	Logger       *slog.Logger
}

// changedAgent is an agent that the project's file defines.
type changedAgent struct {
	Turn int64  // its last turn
	Kill func() // ends it at once if it is itself an executor; else nil
}

const (
	// lookEvery is the polling interval without change notifications, and the delay before a failed
	// change is retried.
	lookEvery = 500 * time.Millisecond
	// lookStill is the polling interval with change notifications. They miss some changes: a
	// copy-up on an overlay, writes through mapped memory, and new mounts. It also bounds how soon
	// the watch notices that no agent is left.
	lookStill = 10 * time.Second
	// mayIdle is how long an agent may outlive its last turn while no executor is known.
	mayIdle = 2 * time.Minute
)

// configWatch checks the configuration while agents are running. Its methods may be called from any
// goroutine.
type configWatch struct {
	opts  configWatchOptions
	ctx   context.Context // ends with the watch
	end   context.CancelFunc
	tasks background.Group // the polling goroutine
	wake  chan struct{}    // makes the goroutine check at once

	mu         sync.Mutex     // guards the fields below
	active     map[int64]bool // active turns; true if the project's file defines the agent
	ofProject  map[int64]projectTurn
	revoked    map[int64]bool // turns whose agents were ended because trust was revoked
	generation uint64         // last seen
	looking    bool           // the goroutine is running
}

// projectTurn is a turn whose agent the project's file defines.
type projectTurn struct {
	changedAgent
	ended time.Time // zero while the turn is active
}

// newConfigWatch returns a watch; end it with Close.
func newConfigWatch(ctx context.Context, opts configWatchOptions) *configWatch {
	w := &configWatch{
		opts: opts, wake: make(chan struct{}, 1), active: make(map[int64]bool),
		ofProject: make(map[int64]projectTurn), revoked: make(map[int64]bool), generation: opts.Changes.Generation(),
	}
	w.ctx, w.end = context.WithCancel(ctx)
	return w
}

// Close ends the watch. It returns ctx's error if a change is still being handled when ctx ends.
func (w *configWatch) Close(ctx context.Context) error {
	w.end()
	return w.tasks.Close(ctx)
}

// TurnStarted notes that a turn has an agent or is about to. fromProject says that the project's file
// defines the agent. The watch then checks at once: the user may have revoked trust between the
// caller's check and this call.
func (w *configWatch) TurnStarted(turn int64, fromProject bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.active[turn] = fromProject
	if fromProject {
		w.ofProject[turn] = projectTurn{changedAgent: changedAgent{Turn: turn}}
		w.lookNow()
	}
	if !w.looking {
		w.looking = w.tasks.Go(w.look)
	}
}

// AgentIsExecutor notes that the executor of a turn is the agent itself, and that kill
// ends it. A revocation may have ended the turn already; then the watch kills the executor.
func (w *configWatch) AgentIsExecutor(turn int64, kill func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.active[turn] {
		w.ofProject[turn] = projectTurn{changedAgent: changedAgent{Turn: turn, Kill: kill}}
		w.lookNow()
	}
}

// AgentStarted notes that a process of a turn is on record. If trust was revoked before that, the
// watch ends this process, too.
func (w *configWatch) AgentStarted(turn int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.revoked[turn] {
		return
	}
	w.ofProject[turn] = projectTurn{changedAgent: changedAgent{Turn: turn}, ended: time.Now()}
	w.lookNow()
	if !w.looking {
		w.looking = w.tasks.Go(w.look)
	}
}

// lookNow wakes the polling goroutine. It does not block.
func (w *configWatch) lookNow() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// TurnEnded notes that a turn has ended. Its agent may still be running.
func (w *configWatch) TurnEnded(turn int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.active, turn)
	if r, ok := w.ofProject[turn]; ok {
		r.ended = time.Now()
		w.ofProject[turn] = r
	}
}

// look polls until no agent is left. It begins at once: trust may have been revoked between the
// check of an agent and its start.
func (w *configWatch) look() {
	changed, stop := w.opts.Changes.Watch()
	defer stop()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for w.isNeeded() {
		next := lookStill
		if changed == nil {
			next = lookEvery
		}
		if err := w.follow(); err != nil {
			next = lookEvery
			if w.ctx.Err() == nil && w.opts.Logger != nil {
				w.opts.Logger.Warn("a change of the configuration could not be followed; it is tried again", "err", err)
			}
		}
		timer.Reset(next)
		select {
		case _, ok := <-changed:
			if !ok {
				changed = nil
			}
		case <-timer.C:
		case <-w.wake:
		case <-w.ctx.Done():
			return
		}
	}
}

// isNeeded reports whether an agent may be running. If not, it marks the goroutine as ended.
func (w *configWatch) isNeeded() bool {
	none := !w.opts.HasExecutors()
	w.mu.Lock()
	defer w.mu.Unlock()
	maps.DeleteFunc(w.ofProject, func(_ int64, r projectTurn) bool {
		return none && !r.ended.IsZero() && time.Since(r.ended) > mayIdle
	})
	w.looking = len(w.active) > 0 || len(w.ofProject) > 0
	if none && !w.looking {
		clear(w.revoked) // none of their processes can start now
	}
	return w.looking
}

// follow handles the changes since its last call.
func (w *configWatch) follow() error {
	now := w.opts.Changes.Generation()
	w.mu.Lock()
	changed, hasAgents := now != w.generation, len(w.ofProject) > 0
	w.mu.Unlock()
	if hasAgents && w.opts.Changes.Revoked() {
		if err := w.endRevoked(); err != nil {
			return err
		}
	}
	if !changed {
		return nil
	}
	if err := w.opts.RulesChanged(w.ctx); err != nil {
		return err
	}
	w.mu.Lock()
	w.generation = now
	w.mu.Unlock()
	return nil
}

// endRevoked ends the agents that the project's file defines. It forgets them first: a process of
// theirs may be put on record meanwhile, which notes its run again.
func (w *configWatch) endRevoked() error {
	w.mu.Lock()
	turns := w.ofProject
	w.ofProject = make(map[int64]projectTurn)
	var agents []changedAgent
	for turn, r := range turns {
		w.revoked[turn] = true
		agents = append(agents, r.changedAgent)
	}
	w.mu.Unlock()
	err := w.opts.TrustRevoked(w.ctx, agents)
	if err != nil { // it is tried again
		w.mu.Lock()
		defer w.mu.Unlock()
		maps.Copy(w.ofProject, turns)
	}
	return err
}

func (h *Hub) newConfigWatch() *configWatch {
	return newConfigWatch(h.ctx, configWatchOptions{
		Changes:      h.opts.Configuration,
		HasExecutors: func() bool { return h.executors.Count() > 0 },
		RulesChanged: h.approvals.ReconsiderAll,
		TrustRevoked: h.endUntrusted,
		Logger:       h.log,
	})
}

// endUntrusted ends agents that the project's file defines, active or idle. It kills them without a
// request to end, because they are untrusted.
func (h *Hub) endUntrusted(ctx context.Context, agents []changedAgent) error {
	h.log.Warn("the project's file is no longer trusted; ending the agents that it defines")
	err := h.write(ctx, func(t store.Tx) error {
		for _, agent := range agents {
			turn, err := t.Turn(h.ctx, agent.Turn)
			if errors.Is(err, store.ErrNotFound) ||
				err == nil && (!turn.State.Active() || turn.State == domain.Interrupting) {
				continue
			}
			if err != nil {
				return err
			}
			if err := h.transition(t, &turn, domain.Interrupting, outcome{
				code: codeRevoked, reason: "trust_revoked",
				message: "its agent is defined by the project's file, which is no longer trusted: review it with `duet-rpc trust`, then continue",
			}); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	turns := make(map[int64]bool)
	for _, agent := range agents {
		turns[agent.Turn] = true
		if agent.Kill != nil {
			agent.Kill()
		}
	}
	if h.opts.KillAgents == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	all, err := h.store.Processes(ctx)
	if err != nil {
		return err
	}
	var theirs []domain.Process
	for _, p := range all {
		if turns[p.Turn] {
			theirs = append(theirs, p)
		}
	}
	h.opts.KillAgents(theirs)
	return nil
}
