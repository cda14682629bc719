package sqlite

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
)

// The latest time goes on when the system's clock is set back.
func TestLatestTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var set time.Duration // by how much the clock was set
		began := time.Now()
		c := newClock(func() time.Time { return time.Now().Add(set) }, time.Time{})
		times := func() [2]time.Duration {
			now, latest := c.read()
			return [2]time.Duration{now.Sub(began), latest.Sub(began)}
		}
		hours := func(now, latest time.Duration) [2]time.Duration {
			return [2]time.Duration{now * time.Hour, latest * time.Hour}
		}
		assert.Equal(t, hours(0, 0), times())
		time.Sleep(time.Hour)
		set = -5 * time.Hour
		assert.Equal(t, hours(-4, 1), times(), "set back")
		time.Sleep(2 * time.Hour)
		assert.Equal(t, hours(-2, 3), times())
		set = 4 * time.Hour
		assert.Equal(t, hours(7, 7), times(), "set forward")
		set = 0
		assert.Equal(t, hours(3, 7), times())
		time.Sleep(5 * time.Hour)
		assert.Equal(t, hours(8, 12), times(), "it stays ahead")

		c = newClock(nil, time.Now().Add(time.Hour))
		now, latest := c.read()
		assert.Equal(t, time.Hour, latest.Sub(now), "the last event of the process before was later")
	})
}
