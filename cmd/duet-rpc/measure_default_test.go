//go:build !soak

package main_test

import (
	"testing"
	"time"
)

// soak reports whether the tests may take their time: `make soak` builds them with the
// tag of this name. Then they play every variant, and more rounds with random seeds.
const soak = false

// The default tier measures nothing: whatever takes time there may take until the watchdog
// of the process. `make soak` holds the program to its limits of time and memory
// (measure_soak_test.go), and the packages that keep them are tested in synctest bubbles.

// A stopwatch measures the time that the program had, in `make soak`.
type stopwatch struct{}

func startStopwatch(testing.TB) *stopwatch                        { return &stopwatch{} }
func (*stopwatch) ends()                                          {}
func (*stopwatch) had() time.Duration                             { return 0 }
func (*stopwatch) assertWithin(testing.TB, time.Duration, ...any) {}

// requireGoneWithin requires that the process ends by itself, with status 0, and in
// `make soak` within a time.
func (p *process) requireGoneWithin(_ time.Duration, _ *stopwatch) {
	p.t.Helper()
	p.requireSuccess()
}

// watchMemory returns the most memory, in bytes, that a process ever had, in `make soak`.
func watchMemory(int) (most func() int64) { return func() int64 { return 0 } }

// memory is a figure of the process's memory in bytes, in `make soak`.
func (p *process) memory(testing.TB, string) int { return 0 }

// memoryOf is such a figure of a process with an id, in `make soak`.
func memoryOf(testing.TB, int, string) int { return 0 }
