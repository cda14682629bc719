package hub

import (
	"context"
	"errors"
	"maps"
	"sync"
	"time"

	"github.com/duet-rpc/duet-rpc/internal/store"

	"github.com/duet-rpc/duet-rpc/internal/domain"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/config"
)

// Changes tell whether the configuration has changed, see [config.Live].
type Changes interface {
	// Generation is a number that is another one when anything may have changed.
	Generation() uint64
	// Revoked reports whether the user does not trust the project's file any
	// more, in no form.
	Revoked() bool
}

// configuredRules are the rules of the configuration as it is now.
func (h *Hub) configuredRules() []config.Rule {
	if h.opts.Rules == nil {
		return nil
	}
	return h.opts.Rules()
}

// configuredKeys are the keys of the configuration as it is now.
func (h *Hub) configuredKeys() map[string]config.Key {
	if h.opts.Keys == nil {
		return nil
	}
	return h.opts.Keys()
}

const (
	// followEvery is how often what agents stand on is looked at while any is at
	// work. What is asked or started meanwhile finds the change at once.
	followEvery = 500 * time.Millisecond
	// mayIdle is how long an agent may be there after its last run while no
	// executor is known of. Where there is one it may last: an agent whose programs
	// run in terminals is not ended for being idle.
	mayIdle = 2 * time.Minute
)

// standing is on what agents stand that are there: the configuration, and for
// those that the project's file defines, that the user trusts it. When one of
// these changes, open questions are held against the rules again; when the trust
// is taken back, those agents are ended. Nothing is looked at while there is no
// agent.
type standing struct {
	hub *Hub

	mu         sync.Mutex // guards the fields below
	active     map[int64]struct{}
	ofProject  map[int64]projectRun
	generation uint64 // that was seen last
	looking    bool
}

// A projectRun is a run whose agent the project's file defines.
type projectRun struct {
	ended time.Time // zero while it lasts
	kill  func()    // ends the agent where that is an executor itself; else nil
}

// begin notes that a run has an agent, or is about to.
func (s *standing) begin(run int64, agent config.Agent) {
	changes := s.hub.opts.Changes
	if changes == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.active == nil {
		s.active, s.ofProject, s.generation = map[int64]struct{}{}, map[int64]projectRun{}, changes.Generation()
	}
	s.active[run] = struct{}{}
	if agent.FromProject {
		s.ofProject[run] = projectRun{}
	}
	if !s.looking && s.hub.ctx.Err() == nil {
		s.looking = true
		// A run is active, and it is its goroutine that calls this.
		s.hub.active.Go(s.look)
	}
}

// has notes the executor that a run has got. One of ours runs agents of others,
// too, and is no agent.
func (s *standing) has(run int64, agent config.Agent, lease catalog.Lease) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r, ok := s.ofProject[run]; ok && agent.Driver == config.DriverExecutor {
		r.kill = lease.Kill
		s.ofProject[run] = r
	}
}

func (s *standing) end(run int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.active, run)
	if r, ok := s.ofProject[run]; ok {
		r.ended = time.Now()
		s.ofProject[run] = r
	}
}

// look looks until there is no agent any more. It begins at once: the trust may
// have been taken back between the look at an agent and its begin.
func (s *standing) look() {
	tick := time.NewTicker(followEvery)
	defer tick.Stop()
	for s.needed() {
		if err := s.once(); err != nil && s.hub.ctx.Err() == nil {
			s.hub.log.Warn("a change of the configuration could not be followed; it is tried again", "err", err)
		}
		select {
		case <-tick.C:
		case <-s.hub.ctx.Done():
			return
		}
	}
}

// needed reports whether there may be an agent, and notes it where not.
func (s *standing) needed() bool {
	none := s.hub.executors.Count() == 0
	s.mu.Lock()
	defer s.mu.Unlock()
	for run, r := range s.ofProject {
		if none && !r.ended.IsZero() && time.Since(r.ended) > mayIdle {
			delete(s.ofProject, run)
		}
	}
	s.looking = len(s.active) > 0 || len(s.ofProject) > 0
	return s.looking
}

// once follows the changes that there were since it was called last.
func (s *standing) once() error {
	changes := s.hub.opts.Changes
	now := changes.Generation()
	s.mu.Lock()
	same := now == s.generation
	ofProject := maps.Clone(s.ofProject)
	s.mu.Unlock()
	if len(ofProject) > 0 && changes.Revoked() {
		if err := s.hub.revoke(ofProject); err != nil {
			return err
		}
		s.mu.Lock()
		for run := range ofProject {
			delete(s.ofProject, run)
		}
		s.mu.Unlock()
	}
	if same {
		return nil
	}
	err := s.hub.write(s.hub.ctx, func(t store.Tx) error { return s.hub.reconsiderIn(t, 0) })
	if err == nil {
		s.mu.Lock()
		s.generation = now
		s.mu.Unlock()
	}
	return err
}

// revoke ends the agents of runs, which the project's file has defined, at work
// or idle. They are not asked to end: nobody trusts them.
func (h *Hub) revoke(runs map[int64]projectRun) error {
	h.log.Warn("the project's file is not trusted any more; the agents that it defines are ended")
	err := h.write(h.ctx, func(t store.Tx) error {
		for id := range runs {
			run, err := t.Run(h.ctx, id)
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
	for _, r := range runs {
		if r.kill != nil {
			r.kill()
		}
	}
	if h.opts.KillAgents == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(h.ctx, time.Minute)
	defer cancel()
	all, err := h.store.Processes(ctx)
	if err != nil {
		return err
	}
	var theirs []domain.Process
	for _, p := range all {
		if _, ok := runs[p.Run]; ok {
			theirs = append(theirs, p)
		}
	}
	h.opts.KillAgents(theirs)
	return nil
}
