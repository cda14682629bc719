//go:build unix && race

package main_test

import "testing"

// TestTakeoverWithoutRaces is TestTakeover with the race detector, fewer rounds and no time limit.
func TestTakeoverWithoutRaces(t *testing.T) {
	t.Parallel()
	takeOver(t, program, 2, watchdog)
}
