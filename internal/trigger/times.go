package trigger

import (
	"context"
	"fmt"
	"time"

	"github.com/duet-rpc/duet-rpc/internal/config"
)

// A dueTime is when a trigger's time comes next.
type dueTime struct {
	trigger  config.Trigger
	schedule config.Schedule
	next     time.Time
}

// schedule takes the triggers that have times. One that is as it was goes on.
func (e *Engine) schedule(active []config.Trigger) {
	due := make(map[string]*dueTime)
	for _, t := range active {
		if t.Cron == "" {
			continue
		}
		before := e.due[t.ID]
		times, err := config.ParseSchedule(t.Cron, t.TimeZone)
		if err != nil { // it was checked when the file was read
			e.warn(err, "a time cannot be read", t.ID)
			continue
		}
		d := &dueTime{trigger: t, schedule: times}
		if before != nil && before.trigger.Cron == t.Cron && before.trigger.TimeZone == t.TimeZone {
			d.next = before.next
		} else if before != nil {
			d.next = times.Next(time.Now())
		} else if d.next = times.Next(e.known[t.ID]); !d.next.After(time.Now()) { // of what was missed, the last
			for later := times.Next(d.next); !later.IsZero() && !later.After(time.Now()); later = times.Next(later) {
				d.next = later
			}
		}
		due[t.ID] = d
	}
	e.due = due
}

// lookAtTheClock is how often the time is compared at least while a time is waited for:
// timers stand still while a machine sleeps, and clocks are set.
const lookAtTheClock = time.Minute

// fireDue does what is due, and tells how long there is nothing to do; waits is false
// where no time is waited for. What is due for longer than lookBack is left out: the
// machine slept.
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
		}
		waits = true
		wait = min(wait, d.next.Sub(now))
	}
	return max(wait, time.Millisecond), waits
}

// fireTime tells all triggers that the time of one has come, and reports whether all have
// seen to it.
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
