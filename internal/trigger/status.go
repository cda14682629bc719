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

// Status lists the triggers and their recent executions.
type Status struct {
	Enabled  bool   // the main switch
	Problem  string // why no trigger acts, or ""
	Triggers []Known
	Recent   []domain.TriggerExecution // the newest first
}

// Known is a trigger with its state.
type Known struct {
	config.Trigger
	State domain.TriggerState
	On    bool      // its own switch
	Next  time.Time // its next time; zero: none, or off
}

// Status returns the current status. A client that does not trust the workspace gets only the
// triggers of the user's own file.
func (e *Engine) Status(ctx context.Context, recent int, trusted bool) (s Status, err error) {
	e.Look() // the client may just have changed the configuration
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

// Active reports whether any trigger is on.
func (e *Engine) Active() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.active) > 0
}

// Executions lists the last executions of a trigger, or of all if id is "", the newest first.
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

// Trial is what a trigger would do for an event.
type Trial struct {
	Trigger string
	Fits    bool
	Why     string // why it would not act
	Does    domain.TriggerAction
}

// Try returns what the triggers would do for an event, without doing it. Limits and switches are
// ignored.
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

// Sources describes the sources of events.
type Sources struct {
	Watch     WatchStatus
	LastFires map[string]time.Time // last due time of each trigger since the start
	Issues    []string             // problems and remedies
}

// WatchStatus is the state of the file watcher.
type WatchStatus struct {
	Enabled     bool
	Paths       []string
	Directories int
	Received    int64 // received changes
	Problem     string
}

// Sources returns the state of the sources of events.
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

// metaEnabled is the meta key of the main switch.
const metaEnabled = "automation_enabled"

// enabled returns the main switch.
func (e *Engine) enabled(ctx context.Context, r store.Reader) (bool, error) {
	value, err := r.Meta(ctx, metaEnabled)
	return value != "false", err
}

// SwitchAll sets the main switch, which persists. The switches of single triggers do not change.
func (e *Engine) SwitchAll(ctx context.Context, on bool) error {
	value := "true"
	if !on {
		value = "false"
	}
	triggers := e.visible(true)
	err := e.opts.Turns.Write(ctx, func(t store.Tx) error {
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

// Switch switches a trigger on or off. known is false if the caller may see no trigger of that id.
func (e *Engine) Switch(ctx context.Context, id string, on, trusted bool) (known bool, err error) {
	for _, d := range e.visible(trusted) {
		known = known || d.ID == id
	}
	if !known {
		return false, nil
	}
	err = e.opts.Turns.Write(ctx, func(t store.Tx) error { return e.putSeen(ctx, t, id, &on) })
	e.Look()
	return true, err
}

// putSeen stores a trigger's switch, if set, and that earlier events are not for it.
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

// visible returns the triggers that a caller may see: without trust, only those of the user's own
// file.
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
