//go:build soak

package main_test

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const soak = true

// A stopwatch tells how long something takes that the program promises to do within
// a time, and how much of that the machine withheld. The latter is measured: the
// stopwatch works for a moment and sleeps for a moment, again and again, and what
// these take longer than on a processor that no other process uses is withheld. On a
// machine that has nothing else to do that is nothing, so that a promise counts as
// it is given.
type stopwatch struct {
	began time.Time
	stop  chan struct{}

	measured, withheld atomic.Int64 // in ns
}

const (
	// stopwatchAfter is how long nothing is measured: most things are done by then.
	stopwatchAfter = 200 * time.Millisecond
	stopwatchPause = 6 * time.Millisecond
)

// startStopwatch starts one, which runs until the end of the test, or until it is
// stopped.
func startStopwatch(t testing.TB) *stopwatch {
	w := &stopwatch{began: time.Now(), stop: make(chan struct{})}
	over := make(chan struct{})
	go func() {
		defer close(over)
		w.measure()
	}()
	t.Cleanup(func() {
		w.ends()
		<-over
	})
	return w
}

// ends stops the stopwatch; it may be called more than once, by one goroutine.
func (w *stopwatch) ends() {
	select {
	case <-w.stop:
	default:
		close(w.stop)
	}
}

func (w *stopwatch) measure() {
	select {
	case <-w.stop:
		return
	case <-time.After(stopwatchAfter):
	}
	for {
		began := time.Now()
		worked := work()
		select {
		case <-w.stop:
			return
		case <-time.After(stopwatchPause):
		}
		took := time.Since(began)
		w.withheld.Add(int64(max(0, took-stopwatchPause-worked)))
		w.measured.Add(int64(took))
	}
}

// leastWork is the shortest time that work has taken in this run, in ns.
var leastWork atomic.Int64

var worked atomic.Uint64 // so that work is not left out

// work keeps a processor busy for some milliseconds, and returns how long that takes
// where nothing else does.
func work() time.Duration {
	began := time.Now()
	x := uint64(began.UnixNano())
	for range 4 << 20 {
		x = x*6364136223846793005 + 1442695040888963407
	}
	worked.Add(x)
	took := int64(time.Since(began))
	for {
		least := leastWork.Load()
		if least != 0 && least <= took {
			return time.Duration(least)
		}
		if leastWork.CompareAndSwap(least, took) {
			return time.Duration(took)
		}
	}
}

// left is how much of a promised time is left, in the time that the program had.
func (w *stopwatch) left(promise time.Duration) time.Duration {
	return promise - w.had()
}

// had is how much time the program had so far: what has passed without what the
// machine withheld, of which there was as much before it was measured as after.
func (w *stopwatch) had() time.Duration {
	passed := time.Since(w.began)
	measured := w.measured.Load()
	if measured == 0 {
		return passed
	}
	return time.Duration(float64(passed) * (1 - float64(w.withheld.Load())/float64(measured)))
}

// assertWithin asserts that something which is over now took no longer than the
// program promises.
func (w *stopwatch) assertWithin(t testing.TB, promise time.Duration, of ...any) {
	t.Helper()
	w.ends()
	assert.Less(t, w.had(), promise, of...)
}

// The stopwatch does not count what others take, and counts all else.
func TestStopwatch(t *testing.T) {
	w := startStopwatch(t)
	<-time.After(2 * stopwatchAfter)
	assert.Greater(t, w.had(), stopwatchAfter/2)
	assert.LessOrEqual(t, w.had(), time.Since(w.began))
	w.withheld.Store(0)
	w.measured.Store(int64(time.Second))
	assert.GreaterOrEqual(t, w.had(), 2*stopwatchAfter)
	w.withheld.Store(int64(750 * time.Millisecond))
	passed := time.Since(w.began)
	assert.InDelta(t, float64(passed)/4, float64(w.had()), float64(passed)/8)
}

// requireGoneWithin requires that the process ends by itself, with status 0,
// within a time since its end began.
func (p *process) requireGoneWithin(promise time.Duration, watch *stopwatch) {
	p.t.Helper()
	defer watch.ends()
	for left := promise; ; left = watch.left(promise) {
		select {
		case <-p.ended:
			p.requireSuccess()
			return
		default:
		}
		if left <= 0 {
			break
		}
		select {
		case <-p.ended:
		case <-time.After(left):
		}
	}
	require.Fail(p.t, "still there", "%v after it should have begun to end, of which it had %v\nstderr: %s", time.Since(watch.began), watch.had(), p.log)
}
