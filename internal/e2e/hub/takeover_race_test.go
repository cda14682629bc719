//go:build unix && race

package hub

import (
	"testing"

	"github.com/duet-rpc/duet-rpc/internal/e2e"
)

// TestTakeoverWithoutRaces is TestTakeover with the race detector, fewer rounds and no time limit.
func TestTakeoverWithoutRaces(t *testing.T) {
	t.Parallel()
	takeOver(t, e2e.Program, 2, e2e.Watchdog)
}
