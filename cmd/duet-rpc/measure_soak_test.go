//go:build soak

package main_test

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A stopwatch measures the duration of a step with a promised limit, and the share of that time
// that the machine withheld. It alternates between work and sleep for some milliseconds each. Time
// beyond the sleep and the shortest work counts as withheld. An idle machine withholds nothing, so
// the limits apply unchanged.
type stopwatch struct {
	began time.Time
	stop  chan struct{}

	measured, withheld atomic.Int64 // in ns
}

const (
	// stopwatchAfter is the time before the first measurement. Most steps end earlier.
	stopwatchAfter = 200 * time.Millisecond
	stopwatchPause = 6 * time.Millisecond
)

const unhurried = "--end-within=1900ms" // the default

// startStopwatch starts a stopwatch, which runs until ends or the end of the test.
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

// ends stops the stopwatch. One goroutine may call it more than once.
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

// leastWork is the shortest duration of work in this run, in ns.
var leastWork atomic.Int64

var worked atomic.Uint64 // keeps the compiler from removing work

// work keeps a processor busy for some milliseconds, and returns its shortest duration in this run.
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

// had returns the program's time so far: the passed time without the withheld share. It assumes the
// same share before the first measurement.
func (w *stopwatch) had() time.Duration {
	passed := time.Since(w.began)
	measured := w.measured.Load()
	if measured == 0 {
		return passed
	}
	return time.Duration(float64(passed) * (1 - float64(w.withheld.Load())/float64(measured)))
}

// assertWithin stops the stopwatch and asserts that the program's time is less than promise.
func (w *stopwatch) assertWithin(t testing.TB, promise time.Duration, of ...any) {
	t.Helper()
	w.ends()
	assert.Less(t, w.had(), promise, of...)
}

// The stopwatch does not count withheld time, and counts all other time.
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

// requireGoneWithin requires that the process ends by itself, with status 0, within promise since
// the start of the stopwatch.
func (p *process) requireGoneWithin(promise time.Duration, watch *stopwatch) {
	p.t.Helper()
	defer watch.ends()
	for left := promise; ; left = promise - watch.had() {
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
	require.Fail(p.t, "the process still runs", "%v after the start of its end, of which the program had %v\nstderr: %s", time.Since(watch.began), watch.had(), p.log)
}
