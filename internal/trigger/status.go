package trigger

import (
	"context"
	"encoding/json"
	"maps"
	"time"

	"github.com/google/uuid"

	"github.com/duet-rpc/duet-rpc/internal/config"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/store"
)

// A Status is what triggers there are, and what they have done.
type Status struct {
	Enabled  bool   // as a whole
	Problem  string // why no trigger does anything, or ""
	Triggers []Known
	Recent   []domain.TriggerExecution // the newest first
}

// A Known is a trigger and what is remembered of it.
type Known struct {
	config.Trigger
	State domain.TriggerState
	On    bool      // it is switched on by itself
	Next  time.Time // when its time comes; zero: it has none, or is off
}

// Status tells what there is. Who does not trust the workspace is told of the triggers of
// the user's own file alone.
func (e *Engine) Status(ctx context.Context, recent int, trusted bool) (s Status, err error) {
	e.Look() // who asks may have changed the configuration a moment ago
	if _, err := e.opts.Definitions(); err != nil {
		s.Problem = "the configuration cannot be read, so no trigger does anything: " + err.Error()
	}
	if s.Enabled, err = e.enabled(ctx, e.opts.Store); err != nil {
		return s, err
	}
	for _, t := range e.visible(trusted) {
		state, err := e.opts.Store.TriggerState(ctx, t.ID)
		if err != nil {
			return s, err
		}
		k := Known{Trigger: t, State: state, On: isEnabled(t, state)}
		if times, err := config.ParseSchedule(t.Cron, t.TimeZone); err == nil && k.On && s.Enabled {
			k.Next = times.Next(time.Now())
		}
		s.Triggers = append(s.Triggers, k)
	}
	s.Recent, err = e.Executions(ctx, "", recent, trusted)
	return s, err
}

// Active reports whether a trigger is on.
func (e *Engine) Active() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.active) > 0
}

// Executions lists what a trigger has done last, or all have where id is "", the newest
// first.
func (e *Engine) Executions(ctx context.Context, id string, limit int, trusted bool) ([]domain.TriggerExecution, error) {
	list, err := e.opts.Store.TriggerExecutions(ctx, id, limit)
	if trusted || err != nil {
		return list, err
	}
	own := make(map[string]bool)
	for _, t := range e.visible(false) {
		own[t.ID] = true
	}
	var visible []domain.TriggerExecution
	for _, x := range list {
		if own[x.Trigger] {
			visible = append(visible, x)
		}
	}
	return visible, nil
}

// A Trial is what a trigger would do for an event.
type Trial struct {
	Trigger string
	Fits    bool
	Why     string // it does not
	Does    config.Action
}

// Try tells what the triggers would do for an event, and does none of it. Neither how
// often one has done something nor whether it is switched on counts.
func (e *Engine) Try(kind, source string, payload json.RawMessage, trusted bool) ([]Trial, error) {
	event := Event{Type: kind, Source: source, Time: time.Now(), key: uuid.NewString(), Payload: map[string]any{}}
	if len(payload) > 0 {
		if err := json.Unmarshal(payload, &event.Payload); err != nil || event.Payload == nil {
			return nil, domain.Invalid("payload", "an object", cut(string(payload), 100))
		}
	}
	var trials []Trial
	for _, t := range e.visible(trusted) {
		trial := Trial{Trigger: t.ID}
		if trial.Fits, trial.Why = Fits(t, event); trial.Fits {
			trial.Does = renderAction(t.Action, event)
		}
		trials = append(trials, trial)
	}
	return trials, nil
}

// Sources are what triggers are told by.
type Sources struct {
	Watch     WatchStatus
	LastFires map[string]time.Time // when the time of each has come last, since the start
	Issues    []string             // what is wrong, and what to do
}

// A WatchStatus is how files are watched.
type WatchStatus struct {
	Enabled     bool
	Paths       []string
	Directories int
	Received    int64 // changes that were told
	Problem     string
}

// Sources tells what is watched, and what has come.
func (e *Engine) Sources() Sources {
	e.mu.Lock()
	defer e.mu.Unlock()
	s := Sources{LastFires: maps.Clone(e.fired)}
	if e.watcher != nil {
		now := e.watcher.Status()
		s.Watch = WatchStatus{Enabled: true, Paths: e.watched, Directories: now.Directories, Received: now.Received, Problem: now.Problem}
	}
	for _, issue := range []string{e.problem, s.Watch.Problem} {
		if issue != "" {
			s.Issues = append(s.Issues, issue)
		}
	}
	return s
}

// metaEnabled is the named value that says whether triggers are switched on.
const metaEnabled = "automation_enabled"

// enabled reports whether triggers are switched on as a whole.
func (e *Engine) enabled(ctx context.Context, r store.Reader) (bool, error) {
	value, err := r.Meta(ctx, metaEnabled)
	return value != "false", err
}

// SwitchAll switches all triggers on or off, whatever each is by itself. That holds until
// it is switched again.
func (e *Engine) SwitchAll(ctx context.Context, on bool) error {
	value := "true"
	if !on {
		value = "false"
	}
	triggers := e.visible(true)
	err := e.opts.Runs.Write(ctx, func(t store.Tx) error {
		was, err := e.enabled(ctx, t)
		if err != nil {
			return err
		}
		if on && !was {
			for _, d := range triggers {
				if err := e.putSeen(ctx, t, d.ID, nil); err != nil {
					return err
				}
			}
		}
		return t.SetMeta(metaEnabled, value)
	})
	e.Look()
	return err
}

// Switch switches a trigger on or off. known is false where there is none of that id that
// whoever asks may see.
func (e *Engine) Switch(ctx context.Context, id string, on, trusted bool) (known bool, err error) {
	for _, d := range e.visible(trusted) {
		known = known || d.ID == id
	}
	if !known {
		return false, nil
	}
	err = e.opts.Runs.Write(ctx, func(t store.Tx) error { return e.putSeen(ctx, t, id, &on) })
	e.Look()
	return true, err
}

// putSeen notes what a trigger was switched to, if it was, and that what happened until
// now is not for it.
func (e *Engine) putSeen(ctx context.Context, t store.Tx, id string, on *bool) error {
	state, err := t.TriggerState(ctx, id)
	if err != nil {
		return err
	}
	if on != nil {
		state.Enabled = on
	}
	if on == nil || *on {
		state.Looked = time.Now()
	}
	return t.PutTriggerState(state)
}

// visible are the triggers that somebody may see: who does not trust the workspace, those
// of the user's own file.
func (e *Engine) visible(trusted bool) (list []config.Trigger) {
	now, err := e.opts.Definitions()
	if err != nil {
		return nil
	}
	for _, d := range now.Triggers {
		if trusted || !d.FromProject {
			list = append(list, d)
		}
	}
	return list
}
