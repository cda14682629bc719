package sqlite

import (
	"sync"
	"time"
)

// A clock tells the time of changes, and the latest time, which setting the system's clock back does not
// set back. Its methods may be called from any goroutine.
type clock struct {
	now   func() time.Time
	began time.Time // with a monotonic part

	mu      sync.Mutex // guards the fields below
	latest  time.Time
	elapsed time.Duration // from began to the time when latest was set
}

// newClock returns a clock whose latest time is not before the time last.
func newClock(now func() time.Time, last time.Time) *clock {
	if now == nil {
		now = time.Now
	}
	return &clock{now: now, began: time.Now(), latest: last}
}

// read returns the time and the latest time.
func (c *clock) read() (now, latest time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now, elapsed := c.now(), time.Since(c.began)
	c.latest = c.latest.Add(elapsed - c.elapsed)
	if wall := now.Round(0); wall.After(c.latest) { // without the monotonic part, which does not know that the clock was set
		c.latest = wall
	}
	c.elapsed = elapsed
	return now, c.latest
}

// Latest implements [store.Store].
func (s *Store) Latest() time.Time {
	_, latest := s.writer.clock.read()
	return latest
}
