package hub

import (
	"time"

	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/store"
)

// runClocks knows by how much the clock was set while runs worked ([domain.Run.ClockOff]). Only the
// store's writer uses it.
type runClocks struct {
	since time.Time // with a monotonic part, which setting the clock does not change
	runs  map[int64]*runClock
}

type runClock struct {
	wall    time.Time     // when off was last computed
	elapsed time.Duration // from since to then
	off     time.Duration
	stored  time.Duration // off when followClock has stored it last
	paused  bool          // the run waits for a person
}

func newRunClocks() *runClocks { return &runClocks{since: time.Now(), runs: make(map[int64]*runClock)} }

// begin is called when a run starts.
func (c *runClocks) begin(run int64, now time.Time) {
	c.runs[run] = &runClock{wall: now, elapsed: time.Since(c.since)}
}

// knows reports whether this process has started a run.
func (c *runClocks) knows(run int64) bool { return c.runs[run] != nil }

func (c *runClocks) end(run int64) { delete(c.runs, run) }

// off returns the ClockOff of a run. A run that this process did not start keeps its own.
func (c *runClocks) off(run domain.Run, now time.Time) time.Duration {
	r, elapsed := c.runs[run.ID], time.Since(c.since)
	if r == nil {
		return run.ClockOff
	}
	if !r.paused {
		r.off += now.Round(0).Sub(r.wall.Round(0)) - (elapsed - r.elapsed) // Round removes the monotonic part
	}
	r.wall, r.elapsed = now, elapsed
	return r.off
}

// pause notes whether a run waits for a person. It is called after off.
func (c *runClocks) pause(run int64, paused bool) {
	if r := c.runs[run]; r != nil {
		r.paused = paused
	}
}

// smallestStep is the least by which a clock is off for its runs to be stored again.
const smallestStep = time.Second

// followClock stores the ClockOff of the runs that work, if the clock was set.
func (h *Hub) followClock(t store.Tx) error {
	for id, c := range h.clocks.runs {
		if now := h.clocks.off(domain.Run{ID: id}, t.Now()); (now - c.stored).Abs() < smallestStep {
			continue
		}
		run, err := t.Run(h.ctx, id)
		if err != nil {
			return err
		}
		run.ClockOff, c.stored = c.off, c.off
		if err := t.UpdateRun(run); err != nil {
			return err
		}
	}
	return nil
}
