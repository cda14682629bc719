package hub

import (
	"time"

	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/store"
)

// turnClocks knows by how much the clock was set while turns worked ([domain.Turn.ClockOff]). Only the
// store's writer uses it.
type turnClocks struct {
	since time.Time // with a monotonic part, which setting the clock does not change
	turns map[int64]*turnClock
}

type turnClock struct {
	wall    time.Time     // when off was last computed
	elapsed time.Duration // from since to then
	off     time.Duration
	stored  time.Duration // off when followClock has stored it last
	paused  bool          // the turn waits for a person
}

func newTurnClocks() *turnClocks {
	return &turnClocks{since: time.Now(), turns: make(map[int64]*turnClock)}
}

// begin is called when a turn starts.
func (c *turnClocks) begin(turn int64, now time.Time) {
	c.turns[turn] = &turnClock{wall: now, elapsed: time.Since(c.since)}
}

// knows reports whether this process has started a turn.
func (c *turnClocks) knows(turn int64) bool { return c.turns[turn] != nil }

func (c *turnClocks) end(turn int64) { delete(c.turns, turn) }

// off returns the ClockOff of a turn. A turn that this process did not start keeps its own.
func (c *turnClocks) off(turn domain.Turn, now time.Time) time.Duration {
	r, elapsed := c.turns[turn.ID], time.Since(c.since)
	if r == nil {
		return turn.ClockOff
	}
	if !r.paused {
		r.off += now.Round(0).Sub(r.wall.Round(0)) - (elapsed - r.elapsed) // Round removes the monotonic part
	}
	r.wall, r.elapsed = now, elapsed
	return r.off
}

// pause notes whether a turn waits for a person. It is called after off.
func (c *turnClocks) pause(turn int64, paused bool) {
	if r := c.turns[turn]; r != nil {
		r.paused = paused
	}
}

// smallestStep is the least by which a clock is off for its turns to be stored again.
const smallestStep = time.Second

// followClock stores the ClockOff of the turns that work, if the clock was set.
func (h *Hub) followClock(t store.Tx) error {
	for id, c := range h.clocks.turns {
		if now := h.clocks.off(domain.Turn{ID: id}, t.Now()); (now - c.stored).Abs() < smallestStep {
			continue
		}
		turn, err := t.Turn(h.ctx, id)
		if err != nil {
			return err
		}
		turn.ClockOff, c.stored = c.off, c.off
		if err := t.UpdateTurn(turn); err != nil {
			return err
		}
	}
	return nil
}
