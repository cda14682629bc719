package trigger

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"time"

	"github.com/duet-rpc/duet-rpc/internal/config"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/store"
)

// dueTime is a trigger's next time.
type dueTime struct {
	trigger  config.Trigger
	schedule config.Schedule
	next     time.Time
}

// schedule updates the triggers with times. An unchanged trigger keeps its time.
func (e *Engine) schedule(active []config.Trigger) {
	due := make(map[string]*dueTime)
	for _, t := range active {
		if t.Cron == "" {
			continue
		}
		before := e.due[t.ID]
		times, err := config.ParseSchedule(t.Cron, t.TimeZone)
		if err != nil { // it was validated when the file was read
			e.warn(err, "a time cannot be read", t.ID)
			continue
		}
		d := &dueTime{trigger: t, schedule: times}
		if before != nil && before.trigger.Cron == t.Cron && before.trigger.TimeZone == t.TimeZone {
			d.next = before.next
		} else if before != nil {
			d.next = times.Next(time.Now())
		} else if d.next = times.Next(e.known[t.ID]); !d.next.After(time.Now()) { // the last of the missed times
			for later := times.Next(d.next); !later.IsZero() && !later.After(time.Now()); later = times.Next(later) {
				d.next = later
			}
		}
		due[t.ID] = d
	}
	e.due = due
}

// lookAtTheClock is the maximum sleep while a time is pending: timers stop while a machine sleeps,
// and clocks are set.
const lookAtTheClock = time.Minute

// fireDue handles due times and returns the wait until the next; waits is false if none is pending.
// It skips times that are older than lookBack, which the machine slept through. After the clock was set
// back, the times until the next come again; a time that has fired does not fire again.
func (e *Engine) fireDue(ctx context.Context, now time.Time) (wait time.Duration, waits bool) {
	wait = lookAtTheClock
	for id, d := range e.due {
		if d.next.IsZero() {
			continue
		}
		if !d.next.After(now) {
			if now.Sub(d.next) <= lookBack && !e.fireTime(ctx, id, d.next) {
				wait, waits = min(wait, tryAgainAfter), true
				continue
			}
			d.next = d.schedule.Next(now)
		} else if next := d.schedule.Next(now); next.Before(d.next) {
			d.next = next
		}
		waits = true
		wait = min(wait, d.next.Sub(now))
	}
	return max(wait, time.Millisecond), waits
}

// fireTime sends a due time to all triggers, and reports whether all have handled it.
func (e *Engine) fireTime(ctx context.Context, id string, at time.Time) (seen bool) {
	e.mu.Lock()
	e.fired[id] = at
	active := e.active
	e.mu.Unlock()
	event := Event{
		Type: config.CronFired, Source: config.SourceSchedule, Time: at, key: fmt.Sprintf("cron:%s:%d", id, at.Unix()),
		Payload: map[string]any{"job_id": id, "due": at.Format(time.RFC3339)},
	}
	seen = true
	for _, t := range active {
		err := e.consider(ctx, t, event)
		e.warn(err, "a trigger has failed", t.ID)
		seen = seen && err == nil
	}
	return seen
}

// kindsOf maps the configured types of file events to the watcher's.
var kindsOf = map[string]changeKind{config.FileCreate: changeCreate, config.FileModify: changeModify, config.FileDelete: changeDelete}

// specOf returns the files that a trigger watches.
func specOf(t config.Trigger, since time.Time) watchSpec {
	spec := watchSpec{ID: t.ID, Paths: t.Paths, Extensions: t.Extensions, Ignore: t.Ignore, Debounce: t.Debounce, Since: since}
	for name, kind := range kindsOf {
		if t.FitsType(name, config.SourceWatch) {
			spec.Kinds = append(spec.Kinds, kind)
		}
	}
	return spec
}

// watch watches the files of the active triggers, or none. Only the engine's goroutine calls it.
func (e *Engine) watch(active []config.Trigger) {
	var watching []config.Trigger
	var specs []watchSpec
	var paths []string
	for _, t := range active {
		if !t.Watches() {
			continue
		}
		watching = append(watching, t)
		specs = append(specs, specOf(t, e.known[t.ID]))
		if len(t.Paths) == 0 {
			paths = append(paths, ".")
		}
		paths = append(paths, t.Paths...)
	}
	if reflect.DeepEqual(watching, e.watching) {
		return
	}
	e.stopWatching()
	if e.watching = watching; len(specs) == 0 {
		return
	}
	w := startWatch(e.ctx, watchOptions{Root: e.opts.Root, Exclude: []string{e.opts.StateDir}, Specs: specs})
	e.batches = w.Batches
	e.mu.Lock()
	e.watcher, e.watched = w, paths
	e.mu.Unlock()
}

func (e *Engine) stopWatching() {
	e.mu.Lock()
	w := e.watcher
	e.watcher, e.watched = nil, nil
	e.mu.Unlock()
	if w != nil {
		w.Close()
		// The new watcher finds what was pending in the old one.
		for _, t := range e.watching {
			since := time.Now().Add(-lookBack)
			if state, err := e.opts.Store.TriggerState(e.ctx, t.ID); err == nil && state.Looked.After(since) && !state.Looked.After(time.Now()) {
				since = state.Looked
			}
			if e.known[t.ID].Before(since) {
				e.known[t.ID] = since
			}
		}
	}
	e.batches, e.watching = nil, nil
}

// fireBatch runs a trigger's action for changed files, and reports whether the batch was handled.
func (e *Engine) fireBatch(ctx context.Context, b changeBatch) (seen bool) {
	depth, err := e.depthOfChanges(ctx, b)
	if err != nil {
		e.warn(err, "cannot read which sessions are at work", b.ID)
	}
	seen = true
	event := eventOfBatch(b, depth)
	for _, t := range e.watching {
		if t.ID == b.ID {
			if t.Type != "" {
				event.Type = t.Type // the batch contains no other kinds
				event.Payload["event_type"] = t.Type[len("file."):]
			}
			err := e.consider(ctx, t, event)
			e.warn(err, "a trigger has failed", t.ID)
			seen = seen && err == nil
		}
	}
	return seen
}

func eventOfBatch(b changeBatch, depth int) Event {
	kind := config.FileModify
	switch {
	case b.Modified == 0 && b.Deleted == 0:
		kind = config.FileCreate
	case b.Modified == 0 && b.Created == 0:
		kind = config.FileDelete
	}
	return Event{
		Type: kind, Source: config.SourceWatch, Time: b.Last, of: b.ID, depth: depth, key: fmt.Sprintf("files:%d", b.Last.UnixNano()),
		Payload: map[string]any{
			"path": b.Paths[0], "paths": b.Paths, "count": b.Count, "truncated": b.Count > len(b.Paths), "event_type": kind[len("file."):],
			"created": b.Created, "modified": b.Modified, "deleted": b.Deleted,
		},
	}
}

// mayStillWrite is how long after its end a session may still cause file change notifications.
const mayStillWrite = 2 * time.Second

// depthOfChanges returns the depth of the trigger sessions that were active during a change,
// because the system does not report who wrote a file.
func (e *Engine) depthOfChanges(ctx context.Context, b changeBatch) (depth int, err error) {
	working, err := e.opts.Store.TurnsIn(ctx, domain.Starting, domain.Running, domain.WaitingInput, domain.Interrupting)
	if err != nil {
		return 0, err
	}
	ended, err := e.opts.Store.TurnsInSessions(ctx, domain.TurnFilter{Source: domain.SourceTrigger, Limit: 50})
	if err != nil {
		return 0, err
	}
	for _, s := range ended {
		working = append(working, s.Turn)
	}
	for _, turn := range working {
		began := !turn.Started.IsZero() && !turn.Started.After(b.Last)
		over := !turn.Ended.IsZero() && turn.Ended.Add(mayStillWrite).Before(b.First)
		if began && !over {
			depth = max(depth, depthOf(turn))
		}
	}
	return depth, nil
}

// followedKinds are the kinds of log events that triggers may match.
var followedKinds = []domain.EventKind{domain.EventTurnState, domain.EventApprovalRequested, domain.EventApprovalResolved}

// follow processes new events of the log if any trigger needs them. seen reports whether all were
// handled.
func (e *Engine) follow(ctx context.Context) (seen bool) {
	e.mu.Lock()
	active, wants := e.active, slices.Equal(e.wants, followedKinds)
	e.mu.Unlock()
	if !wants {
		e.followed = 0
		return true
	}
	if e.followed == 0 {
		var err error
		if e.followed, err = e.beginning(ctx); err != nil {
			e.warn(err, "the log cannot be read", "")
			return false
		}
	}
	upTo := e.opts.Log.Last()
	failed := false
	err := e.opts.Log.Replay(ctx, followedKinds, e.followed, upTo, func(logged domain.Event, s domain.TurnInSession) bool {
		event, ok := eventOf(logged, s)
		if !ok || logged.Seq <= e.before && logged.Time.After(e.begun) { // from before the clock was set back
			return true
		}
		for _, t := range active {
			if t.FollowsRuns() && !logged.Time.Before(e.known[t.ID]) && ctx.Err() == nil {
				if err := e.consider(ctx, t, event); err != nil {
					e.warn(err, "a trigger has failed", t.ID)
					failed = true
				}
			}
		}
		e.followed = logged.Seq
		return !failed && ctx.Err() == nil
	})
	if err != nil || failed || ctx.Err() != nil {
		e.warn(err, "the log cannot be read", "")
		return false
	}
	e.followed = max(e.followed, upTo)
	return true
}

// beginning returns the first number to process after a start, which covers lookBack.
func (e *Engine) beginning(ctx context.Context) (int64, error) {
	const page = 500
	at := e.opts.Log.Last()
	for since := time.Now().Add(-lookBack); at > 0; at = max(at-page, 0) {
		events, err := e.opts.Store.Events(ctx, max(at-page, 0), 1)
		if err != nil && !store.IsDamaged(err) {
			return 0, err
		}
		if len(events) == 0 || events[0].Time.Before(since) {
			at = max(at-page, 0)
			break
		}
	}
	return at, nil
}

// eventOf converts a log event for triggers.
func eventOf(logged domain.Event, s domain.TurnInSession) (Event, bool) {
	event := Event{
		Source: config.SourceTurn, Time: logged.Time, key: fmt.Sprintf("seq:%d", logged.Seq), depth: depthOf(s.Turn),
		restricted: s.Turn.Restricted,
		Payload: map[string]any{
			"session_id": logged.Ref.HumanLayerSession, "run_id": logged.Ref.HumanLayerRun, "task_id": domain.TaskName(logged.Ref.Task),
			"thread_id": s.Session.UUID,
			"title":     s.Turn.Title, "agent": s.Turn.Agent, "source": s.Turn.Source, "prompt": cut(s.Turn.Prompt, 2000), "working_dir": s.Session.CWD,
		},
	}
	set := func(key, value string) {
		if value != "" {
			event.Payload[key] = value
		}
	}
	if by := metadataOf(s.Turn); by.Trigger != "" {
		event.Payload["trigger"], event.Payload["depth"] = by.Trigger, by.Depth
	}
	switch p := logged.Payload.(type) {
	case domain.TurnStateChanged:
		event.Type = "turn." + string(p.To)
		event.Payload["state"] = string(p.To)
		set("old_state", string(p.From))
		set("reason", p.Reason)
		set("error", cut(p.Error, 4000))
		set("error_code", p.ErrorCode)
		set("stop_reason", p.StopReason)
		if p.To.Ended() {
			set("result", cut(s.Turn.Result, 4000))
		}
	case domain.ApprovalRequested:
		event.Type, event.Source = config.ApprovalRequested, config.SourceApproval
		set("approval_id", p.ApprovalID)
		set("tool_name", p.Tool)
		set("question", cut(p.Title, 2000))
		set("subject", cut(p.Subject, 2000))
	case domain.ApprovalResolved:
		event.Type, event.Source = config.ApprovalResolved, config.SourceApproval
		set("approval_id", p.ApprovalID)
		set("tool_name", p.Tool)
		set("question", cut(p.Title, 2000))
		set("decision", p.Status)
		set("decided_by", p.DecidedBy)
		set("response", cut(p.Response, 2000))
	default:
		return Event{}, false
	}
	return event, true
}

// begunBy is the metadata of a turn that a trigger began.
type begunBy struct {
	Trigger string `json:"trigger"`
	Depth   int    `json:"trigger_depth"`
}

func metadataOf(turn domain.Turn) (by begunBy) {
	_ = json.Unmarshal(turn.Metadata, &by) // absent, or a caller's own
	return by
}

// depthOf returns the number of trigger executions that led to a turn.
func depthOf(turn domain.Turn) int {
	switch turn.Source {
	case domain.SourceTrigger:
		return max(metadataOf(turn).Depth, 1)
	case domain.SourceAgent: // the depth of the previous turn
		return max(metadataOf(turn).Depth, 0)
	}
	return 0
}
