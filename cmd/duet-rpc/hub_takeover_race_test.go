//go:build unix && race

package main_test

import "testing"

// What TestTakeover does, for the eyes of the race detector; its time is not
// measured.
func TestTakeoverWithoutRaces(t *testing.T) {
	t.Parallel()
	takeOver(t, program, 2, watchdog)
}
