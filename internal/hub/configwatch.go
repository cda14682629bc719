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

// This file follows changes of the configuration while agents are
// there: questions that wait meet the new rules, and where the user takes back the
// trust in the project's file, the agents that it defines are ended.
//
// Who asks or starts something meets the configuration as it is at that moment;
// this is for what was asked or started before. The system tells of changes, where
// it can; nothing is looked at while there is no agent.

// ConfigChanges tell whether the configuration has changed, see config.Live.
type ConfigChanges interface {
	// Generation is a number that is another one when anything may have changed.
	Generation() uint64
	// Revoked reports whether the user does not trust the project's file any
	// more, in no form.
	Revoked() bool
	// Watch tells on changed, until stop is called, when either may have become
	// another. It is closed when the system cannot tell any more, and nil where it
	// never could.
	Watch() (changed <-chan struct{}, stop func())
}

// configWatchOptions say what a Watch looks at, and what it does. All but Logger are
// required; the functions are called by one goroutine.
type configWatchOptions struct {
	Changes ConfigChanges
	// HasExecutors reports whether there is any executor. Where there is one, an
	// agent may outlast its runs: one whose programs run in terminals is not ended
	// for being idle.
	HasExecutors func() bool
	// RulesChanged is called when the configuration has changed, and again after a
	// moment if it fails.
	RulesChanged func(context.Context) error
	// TrustRevoked ends the agents that the project's file defines, at work or
	// idle. It is called again after a moment if it fails.
	TrustRevoked func(context.Context, []changedAgent) error
	Logger       *slog.Logger
}

// An changedAgent is one that the project's file defines.
type changedAgent struct {
	Run  int64  // its last
	Kill func() // ends it at once, where it is an executor itself; else nil
}

const (
	// lookEvery is how often the configuration is looked at where nothing tells of
	// changes, and how soon one that could not be followed is tried again.
	lookEvery = 500 * time.Millisecond
	// lookStill is how often it is looked at all the same where changes are told:
	// on an overlay, a file that is copied up is another one without a word, and
	// nothing is told of what is written through memory, or mounted over it. It is
	// also how soon it is noticed that there is no agent any more.
	lookStill = 10 * time.Second
	// mayIdle is how long an agent may be there after its last run while no
	// executor is known of.
	mayIdle = 2 * time.Minute
)

// A configWatch looks at the configuration while there are agents. Its methods may be
// called from any goroutine.
type configWatch struct {
	opts  configWatchOptions
	ctx   context.Context // ends with the watch
	end   context.CancelFunc
	tasks background.Group // the goroutine that looks
	wake  chan struct{}    // has the goroutine look at once

	mu         sync.Mutex     // guards the fields below
	active     map[int64]bool // runs that last, with whether the project's file defines their agent
	ofProject  map[int64]projectRun
	generation uint64 // that was seen last
	looking    bool   // there is a goroutine that looks
}

// A projectRun is a run whose agent the project's file defines.
type projectRun struct {
	changedAgent
	ended time.Time // zero while it lasts
}

// newConfigWatch makes a watch, to be ended by Close.
func newConfigWatch(ctx context.Context, opts configWatchOptions) *configWatch {
	w := &configWatch{opts: opts, wake: make(chan struct{}, 1), active: make(map[int64]bool), ofProject: make(map[int64]projectRun), generation: opts.Changes.Generation()}
	w.ctx, w.end = context.WithCancel(ctx)
	return w
}

// Close ends the watch. The error is that of ctx if a change that it follows at
// this moment lasts longer.
func (w *configWatch) Close(ctx context.Context) error {
	w.end()
	return w.tasks.Close(ctx)
}

// RunStarted notes that a run has an agent, or is about to. fromProject says that
// the project's file defines the agent: then the watch looks at once, since the user may
// have revoked the trust between the caller's check and this call.
func (w *configWatch) RunStarted(run int64, fromProject bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.active[run] = fromProject
	if fromProject {
		w.ofProject[run] = projectRun{changedAgent: changedAgent{Run: run}}
		w.lookNow()
	}
	if !w.looking {
		w.looking = w.tasks.Go(w.look)
	}
}

// AgentIsExecutor notes that the executor of a run is the agent itself, and that kill
// ends it. A revocation may have ended the run already; then the watch kills the executor.
func (w *configWatch) AgentIsExecutor(run int64, kill func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.active[run] {
		w.ofProject[run] = projectRun{changedAgent: changedAgent{Run: run, Kill: kill}}
		w.lookNow()
	}
}

// lookNow wakes the goroutine that looks. It does not block.
func (w *configWatch) lookNow() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// RunEnded notes that a run has ended. Its agent may still be there.
func (w *configWatch) RunEnded(run int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.active, run)
	if r, ok := w.ofProject[run]; ok {
		r.ended = time.Now()
		w.ofProject[run] = r
	}
}

// look looks until there is no agent any more. It begins at once: the trust may
// have been taken back between the look at an agent and its start.
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

// isNeeded reports whether there may be an agent, and notes it where not.
func (w *configWatch) isNeeded() bool {
	none := !w.opts.HasExecutors()
	w.mu.Lock()
	defer w.mu.Unlock()
	maps.DeleteFunc(w.ofProject, func(_ int64, r projectRun) bool {
		return none && !r.ended.IsZero() && time.Since(r.ended) > mayIdle
	})
	w.looking = len(w.active) > 0 || len(w.ofProject) > 0
	return w.looking
}

// follow follows the changes that there were since it was called last.
func (w *configWatch) follow() error {
	now := w.opts.Changes.Generation()
	w.mu.Lock()
	changed := now != w.generation
	var ofProject []changedAgent
	for _, r := range w.ofProject {
		ofProject = append(ofProject, r.changedAgent)
	}
	w.mu.Unlock()
	if len(ofProject) > 0 && w.opts.Changes.Revoked() {
		if err := w.opts.TrustRevoked(w.ctx, ofProject); err != nil {
			return err
		}
		w.mu.Lock()
		for _, agent := range ofProject {
			delete(w.ofProject, agent.Run)
		}
		w.mu.Unlock()
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

// watchConfig makes the watch of the configuration, or nil where that does not
// change.
func (h *Hub) watchConfig() *configWatch {
	if h.opts.Changes == nil {
		return nil
	}
	return newConfigWatch(h.ctx, configWatchOptions{
		Changes:      h.opts.Changes,
		HasExecutors: func() bool { return h.executors.Count() > 0 },
		RulesChanged: h.approvals.ReconsiderAll,
		TrustRevoked: h.endUntrusted,
		Logger:       h.log,
	})
}

// endUntrusted ends agents that the project's file has defined, at work or idle.
// They are not asked to end: nobody trusts them.
func (h *Hub) endUntrusted(ctx context.Context, agents []changedAgent) error {
	h.log.Warn("the project's file is not trusted any more; the agents that it defines are ended")
	err := h.write(ctx, func(t store.Tx) error {
		for _, agent := range agents {
			run, err := t.Run(h.ctx, agent.Run)
			if errors.Is(err, store.ErrNotFound) || err == nil && (!run.State.Active() || run.State == domain.Interrupting) {
				continue
			}
			if err != nil {
				return err
			}
			if err := h.transition(t, &run, domain.Interrupting, outcome{
				code: codeRevoked, reason: "trust_revoked",
				message: "its agent is defined by the project's file, which is not trusted any more: look at it with `duet-rpc trust`, then continue",
			}); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	runs := make(map[int64]bool)
	for _, agent := range agents {
		runs[agent.Run] = true
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
		if runs[p.Run] {
			theirs = append(theirs, p)
		}
	}
	h.opts.KillAgents(theirs)
	return nil
}
