//go:build linux && soak

// Package chaos tests the built program while its processes are killed at random. It has tests only.
//
// In a round, editors, socket clients and shells launch, continue, interrupt and answer questions,
// often the same question twice. Hubs, executors, agents and relays are killed (SIGKILL), often right
// after an acknowledgement, and hubs are stopped for a moment. The scripted agent writes a
// journal to the disk: its questions, the answers and its actions.
//
// After the kills a round waits until nothing moves, and checks: no acknowledged launch is lost; a
// question is a register that is written once (porcupine finds an order of all calls that explains
// all replies); nothing is carried out twice for one answer, or after a denial; every acknowledged
// approval is carried out, or open again; events have no gap and are the same for every client;
// interrupted turns can be continued; no process is left.
//
// A power cut is not simulated: a kill leaves what the kernel has. Package store/sqlite answers for
// the disk.
//
// The tests have the tag soak: `make chaos` runs five minutes, `go test -tags soak` a short round.
package chaos

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Whatever dies, and whenever: what was acknowledged holds.
func TestChaos(t *testing.T) {
	seed := *chaosSeed
	if seed == 0 {
		seed = uint64(time.Now().UnixNano())
	}
	t.Logf("-chaos.seed %d", seed)
	began := time.Now()
	for number := uint64(1); number == 1 || time.Since(began) < *chaosTime; number++ {
		t.Run(fmt.Sprintf("round %d", number), func(t *testing.T) {
			r := newRound(t, seed, number)
			r.run()
			for _, text := range r.board.findings {
				r.found(checkOdd, "%s", text)
			}
			t.Logf("%d launches, %d calls to %d questions, %d events, %d approvals judged, %d works forked; killed: %v; %v",
				len(r.board.launches), len(r.board.calls), len(r.board.questions), len(r.evidence.Log), r.judged, forks(r.evidence.forked()), r.killer, time.Since(r.began).Round(time.Millisecond))
			if len(r.findings) == 0 {
				return
			}
			dir := *chaosKeep
			if dir == "" {
				var err error
				dir, err = os.MkdirTemp("", "duet-chaos-kept")
				require.NoError(t, err)
			}
			dir = filepath.Join(dir, fmt.Sprintf("seed-%d-round-%d", seed, number))
			r.keep(dir)
			for _, f := range r.findings {
				t.Error(f)
			}
			t.Logf("the whole history is in %s; -chaos.seed %d", dir, seed)
		})
	}
}

func forks(of map[string]bool) (n int) {
	for _, forked := range of {
		if forked {
			n++
		}
	}
	return n
}
