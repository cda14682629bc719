//go:build !soak

package main_test

import (
	"testing"
	"time"
)

// The default tier measures nothing: each step may take until the watchdog of its process. `make
// soak` enforces the limits of time and memory (measure_soak_test.go). The tests of the packages
// that keep these limits use synctest bubbles.

// A stopwatch measures the program's time, in `make soak` only.
type stopwatch struct{}

// unhurried lets a process on a slow machine send its last responses. `make soak` measures how long
// the end takes.
const unhurried = "--end-within=1m"

func startStopwatch(testing.TB) *stopwatch                        { return &stopwatch{} }
func (*stopwatch) ends()                                          {}
func (*stopwatch) had() time.Duration                             { return 0 }
func (*stopwatch) assertWithin(testing.TB, time.Duration, ...any) {}

// requireGoneWithin requires that the process ends by itself, with status 0. In `make soak` it also
// requires a time limit.
func (p *process) requireGoneWithin(_ time.Duration, _ *stopwatch) {
	p.t.Helper()
	p.requireSuccess()
}

// watchMemory returns a function for the peak memory of a process in bytes, in `make soak` only.
func watchMemory(int) (most func() int64) { return func() int64 { return 0 } }

// memory returns a figure of the process's memory in bytes, in `make soak` only.
func (p *process) memory(testing.TB, string) int { return 0 }

// memoryOf is memory for a process id.
func memoryOf(testing.TB, int, string) int { return 0 }
