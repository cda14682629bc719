//go:build !soak

package e2e

import (
	"testing"
	"time"
)

// The default tier measures nothing: each step may take until the watchdog of its process. `make
// soak` enforces the limits of time and memory (measure_soak.go). The tests of the packages
// that keep these limits use synctest bubbles.

// A Stopwatch measures the program's time, in `make soak` only.
type Stopwatch struct{}

// Unhurried lets a process on a slow machine send its last responses. `make soak` measures how long
// the end takes.
const Unhurried = "--end-within=1m"

// StartStopwatch returns a stopwatch.
func StartStopwatch(testing.TB) *Stopwatch { return &Stopwatch{} }

// Ends does nothing here.
func (*Stopwatch) Ends() {}

// Had returns 0.
func (*Stopwatch) Had() time.Duration { return 0 }

// AssertWithin asserts nothing here.
func (*Stopwatch) AssertWithin(testing.TB, time.Duration, ...any) {}

// RequireGoneWithin requires that the process ends by itself, with status 0. In `make soak` it also
// requires a time limit.
func (p *Process) RequireGoneWithin(_ time.Duration, _ *Stopwatch) {
	p.T.Helper()
	p.RequireSuccess()
}

// WatchMemory returns a function for the peak memory of a process in bytes, in `make soak` only.
func WatchMemory(int) (most func() int64) { return func() int64 { return 0 } }

// Memory returns a figure of the process's memory in bytes, in `make soak` only.
func (p *Process) Memory(testing.TB, string) int { return 0 }

// MemoryOf is Memory for a process id.
func MemoryOf(testing.TB, int, string) int { return 0 }
