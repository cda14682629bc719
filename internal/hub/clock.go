package hub

import (
	"time"

	"github.com/duet-rpc/duet-rpc/internal/domain"
)

// A clock ends a run that takes too long. It stands still while the run waits
// for a human.
type clock struct {
	timer *time.Timer
	left  time.Duration
	since time.Time
}

func newClock(limit time.Duration, expired func()) *clock {
	return &clock{timer: time.AfterFunc(limit, expired), left: limit, since: time.Now()}
}

func (c *clock) stop() {
	if c != nil {
		c.timer.Stop()
	}
}

func (c *clock) pause() {
	if c != nil && c.timer.Stop() {
		c.left -= time.Since(c.since)
	}
}

func (c *clock) resume() {
	if c != nil {
		c.since = time.Now()
		c.timer.Reset(max(c.left, time.Second))
	}
}

// limitOf is how long a run may take.
func (h *Hub) limitOf(run domain.Run) time.Duration {
	if run.Timeout > 0 {
		return run.Timeout
	}
	return h.opts.Limits.RunTimeout
}
