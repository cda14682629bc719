//go:build soak

package e2e

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// The stopwatch does not count withheld time, and counts all other time.
func TestStopwatch(t *testing.T) {
	w := StartStopwatch(t)
	<-time.After(2 * stopwatchAfter)
	assert.Greater(t, w.Had(), stopwatchAfter/2)
	assert.LessOrEqual(t, w.Had(), time.Since(w.Began))
	w.withheld.Store(0)
	w.measured.Store(int64(time.Second))
	assert.GreaterOrEqual(t, w.Had(), 2*stopwatchAfter)
	w.withheld.Store(int64(750 * time.Millisecond))
	passed := time.Since(w.Began)
	assert.InDelta(t, float64(passed)/4, float64(w.Had()), float64(passed)/8)
}
