//go:build soak

package e2e

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A Stopwatch measures the duration of a step with a promised limit, and the share of that time
// that the machine withheld. It alternates between work and sleep for some milliseconds each. Time
// beyond the sleep and the shortest work counts as withheld. An idle machine withholds nothing, so
// the limits apply unchanged.
type Stopwatch struct {
	Began time.Time
	stop  chan struct{}

	measured, withheld atomic.Int64 // in ns
}

const (
	// stopwatchAfter is the time before the first measurement. Most steps end earlier.
	stopwatchAfter = 200 * time.Millisecond
	stopwatchPause = 6 * time.Millisecond
)

// Unhurried is the default of the flag.
const Unhurried = "--end-within=1900ms"

// StartStopwatch starts a stopwatch, which runs until Ends or the end of the test.
func StartStopwatch(t testing.TB) *Stopwatch {
	w := &Stopwatch{Began: time.Now(), stop: make(chan struct{})}
	over := make(chan struct{})
	go func() {
		defer close(over)
		w.measure()
	}()
	t.Cleanup(func() {
		w.Ends()
		<-over
	})
	return w
}

// Ends stops the stopwatch. One goroutine may call it more than once.
func (w *Stopwatch) Ends() {
	select {
	case <-w.stop:
	default:
		close(w.stop)
	}
}

func (w *Stopwatch) measure() {
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

// Had returns the program's time so far: the passed time without the withheld share. It assumes the
// same share before the first measurement.
func (w *Stopwatch) Had() time.Duration {
	passed := time.Since(w.Began)
	measured := w.measured.Load()
	if measured == 0 {
		return passed
	}
	return time.Duration(float64(passed) * (1 - float64(w.withheld.Load())/float64(measured)))
}

// AssertWithin stops the stopwatch and asserts that the program's time is less than promise.
func (w *Stopwatch) AssertWithin(t testing.TB, promise time.Duration, of ...any) {
	t.Helper()
	w.Ends()
	assert.Less(t, w.Had(), promise, of...)
}

// RequireGoneWithin requires that the process ends by itself, with status 0, within promise since
// the start of the stopwatch.
func (p *Process) RequireGoneWithin(promise time.Duration, watch *Stopwatch) {
	p.T.Helper()
	defer watch.Ends()
	for left := promise; ; left = promise - watch.Had() {
		select {
		case <-p.Ended:
			p.RequireSuccess()
			return
		default:
		}
		if left <= 0 {
			break
		}
		select {
		case <-p.Ended:
		case <-time.After(left):
		}
	}
	require.Fail(
		p.T, "the process still runs", "%v after the start of its end, of which the program had %v\nstderr: %s", time.Since(watch.Began),
		watch.Had(), p.Log,
	)
}
