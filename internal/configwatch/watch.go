// Package configwatch follows changes of the configuration while agents are
// there: questions that wait meet the new rules, and where the user takes back the
// trust in the project's file, the agents that it defines are ended.
//
// Who asks or starts something meets the configuration as it is at that moment;
// this is for what was asked or started before. The system tells of changes, where
// it can; nothing is looked at while there is no agent.
package configwatch

import (
	"context"
	"log/slog"
	"maps"
	"sync"
	"time"

	"github.com/duet-rpc/duet-rpc/internal/background"
)

// Changes tell whether the configuration has changed, see config.Live.
type Changes interface {
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

// Options say what a Watch looks at, and what it does. All but Logger are
// required; the functions are called by one goroutine.
type Options struct {
	Changes Changes
	// HasExecutors reports whether there is any executor. Where there is one, an
	// agent may outlast its runs: one whose programs run in terminals is not ended
	// for being idle.
	HasExecutors func() bool
	// RulesChanged is called when the configuration has changed, and again after a
	// moment if it fails.
	RulesChanged func(context.Context) error
	// TrustRevoked ends the agents that the project's file defines, at work or
	// idle. It is called again after a moment if it fails.
	TrustRevoked func(context.Context, []Agent) error
	Logger       *slog.Logger
}

// An Agent is one that the project's file defines.
type Agent struct {
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

// A Watch looks at the configuration while there are agents. Its methods may be
// called from any goroutine.
type Watch struct {
	opts  Options
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
	Agent
	ended time.Time // zero while it lasts
}

// New makes a watch, to be ended by Close.
func New(ctx context.Context, opts Options) *Watch {
	w := &Watch{opts: opts, wake: make(chan struct{}, 1), active: make(map[int64]bool), ofProject: make(map[int64]projectRun), generation: opts.Changes.Generation()}
	w.ctx, w.end = context.WithCancel(ctx)
	return w
}

// Close ends the watch. The error is that of ctx if a change that it follows at
// this moment lasts longer.
func (w *Watch) Close(ctx context.Context) error {
	w.end()
	return w.tasks.Close(ctx)
}

// RunStarted notes that a run has an agent, or is about to. fromProject says that
// the project's file defines the agent: then the watch looks at once, since the user may
// have revoked the trust between the caller's check and this call.
func (w *Watch) RunStarted(run int64, fromProject bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.active[run] = fromProject
	if fromProject {
		w.ofProject[run] = projectRun{Agent: Agent{Run: run}}
		w.lookNow()
	}
	if !w.looking {
		w.looking = w.tasks.Go(w.look)
	}
}

// AgentIsExecutor notes that the executor of a run is the agent itself, and that kill
// ends it. A revocation may have ended the run already; then the watch kills the executor.
func (w *Watch) AgentIsExecutor(run int64, kill func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.active[run] {
		w.ofProject[run] = projectRun{Agent: Agent{Run: run, Kill: kill}}
		w.lookNow()
	}
}

// lookNow wakes the goroutine that looks. It does not block.
func (w *Watch) lookNow() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// RunEnded notes that a run has ended. Its agent may still be there.
func (w *Watch) RunEnded(run int64) {
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
func (w *Watch) look() {
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
func (w *Watch) isNeeded() bool {
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
func (w *Watch) follow() error {
	now := w.opts.Changes.Generation()
	w.mu.Lock()
	changed := now != w.generation
	var ofProject []Agent
	for _, r := range w.ofProject {
		ofProject = append(ofProject, r.Agent)
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
