//go:build !race

package e2e

// RaceEnabled reports whether the tests use the race detector.
const RaceEnabled = false
