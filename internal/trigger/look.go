package trigger

import (
	"cmp"
	"reflect"
	"slices"
	"time"

	"github.com/duet-rpc/duet-rpc/internal/config"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/store"
)

// Start begins to look for events.
func (e *Engine) Start() {
	e.begun = time.Now()
	e.mu.Lock()
	e.started = true
	e.mu.Unlock()
	e.sender = newSender(e.ctx, &e.tasks, e.noteSent)
	e.tasks.Go(e.look)
}

// tryAgainAfter is when what could not be written down is seen to again.
const tryAgainAfter = 5 * time.Second

// look looks until the engine ends.
func (e *Engine) look() {
	defer func() { e.unwatch() }()
	defer e.stopWatching()
	first := true
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for e.ctx.Err() == nil {
		e.refresh(first)
		if first {
			e.giveUpSending(e.ctx)
			first = false
		}
		e.settle(e.ctx)
		seen := e.follow(e.ctx)
		e.unseen = slices.DeleteFunc(e.unseen, func(b changeBatch) bool { return e.fireBatch(e.ctx, b) })
		wait, waits := e.fireDue(e.ctx, time.Now())
		if !seen || len(e.unseen) > 0 {
			wait, waits = min(wait, tryAgainAfter), true
		}
		if waits {
			timer.Reset(wait)
		} else {
			timer.Stop()
		}
		select {
		case <-e.ctx.Done():
		case <-e.poke:
		case <-timer.C:
		case _, ok := <-e.changed:
			if !ok {
				e.changed = nil
			}
		case b := <-e.batches:
			e.unseen = append(e.unseen, b)
		}
	}
}

// refresh takes what the configuration says now, and what people have switched.
func (e *Engine) refresh(first bool) {
	now, err := e.opts.Definitions()
	problem := ""
	if err != nil {
		now, problem = Definitions{}, "the configuration cannot be read, so no trigger does anything: "+err.Error()
	}
	on, err := e.enabled(e.ctx, e.opts.Store)
	if err != nil {
		problem = cmp.Or(problem, err.Error())
	}
	var active []config.Trigger
	for _, t := range now.Triggers {
		state, err := e.opts.Store.TriggerState(e.ctx, t.ID)
		if err != nil || !on || !isEnabled(t, state) {
			continue
		}
		active = append(active, t)
		if _, seen := e.known[t.ID]; !seen {
			e.meet(t, state, first)
		}
	}
	for id := range e.known {
		if !slices.ContainsFunc(active, func(t config.Trigger) bool { return t.ID == id }) {
			delete(e.known, id) // when it comes back, it is as one that is new
		}
	}
	e.mu.Lock()
	unchanged := !first && reflect.DeepEqual(active, e.active)
	if e.problem != problem && problem != "" && e.opts.Logger != nil {
		e.opts.Logger.Warn("automation stands still", "err", problem)
	}
	e.active, e.problem = active, problem
	e.wants = []domain.EventKind{domain.EventApprovalResolved}
	if slices.ContainsFunc(active, config.Trigger.FollowsRuns) {
		e.wants = followedKinds
	}
	e.mu.Unlock()
	if len(now.Triggers) > 0 && e.changed == nil && e.opts.Changes != nil {
		e.changed, e.unwatch = e.opts.Changes.Watch()
	} else if len(now.Triggers) == 0 && e.changed != nil && problem == "" {
		e.unwatch()
		e.changed, e.unwatch = nil, func() {}
	}
	if unchanged {
		return
	}
	e.schedule(active)
	e.watch(active)
}

// meet notes since when a trigger is known: what happened before is not for it.
func (e *Engine) meet(t config.Trigger, state domain.TriggerState, first bool) {
	now := time.Now()
	if first {
		now = e.begun // what has happened while this goroutine was starting is for it
	}
	if state.Looked.IsZero() {
		state.Looked = now
		err := e.opts.Runs.Write(e.ctx, func(tx store.Tx) error {
			kept, err := tx.TriggerState(e.ctx, t.ID)
			if err != nil {
				return err
			}
			kept.Looked = now
			return tx.PutTriggerState(kept)
		})
		e.warn(err, "a trigger is not known to the database yet", t.ID)
	}
	since := now.Add(-lookBack)
	if state.Looked.After(since) {
		since = state.Looked
	}
	e.known[t.ID] = since
}
