//go:build linux && soak

// Package chaos tests the built program while the test kills its processes at random.
//
// In a round, editors, socket clients and shells launch, continue and interrupt sessions and answer
// questions, often the same question twice. Several of them at once send prompts to one session
// and edit, move and withdraw its queued prompts, review the change of one file, and launch, archive
// and delete one session. The killer sends SIGKILL to hubs, executors, agents and relays, often
// right after an acknowledgement, and stops hubs for a moment. The scripted agent writes its
// questions, their answers and its actions to a journal on the disk.
//
// After the kills a round waits until the project is at rest, and checks these promises. No
// acknowledged launch is lost. A question is a write-once register: porcupine finds an order of all
// calls that explains all responses. It finds one, too, for each queue, each reviewed change and each
// shared session. A call without a response may have taken effect or not, but not twice. A queued
// prompt reaches its agent once, as it was edited. One answer leads to at most one action, and a denial
// to none. Each acknowledged approval leads to its action or to an open question. Events have no gap
// and are the same for every client. Interrupted turns can continue. No process is left.
//
// A kill does not simulate a power cut, because the kernel keeps written data. Package store/sqlite
// tests the disk.
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

// Acknowledged requests survive the death of any process at any time.
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
			t.Logf("%d launches, %d calls to %d questions, %d to queues, %d to changes, %d to sessions, %d events, %d approvals judged, %d works forked; killed: %v; %v",
				len(r.board.launches), len(r.board.calls), len(r.board.questions), len(r.board.queueCalls), len(r.board.changeCalls), len(r.board.convCalls), len(r.evidence.Log), r.judged, forks(r.evidence.forked()), r.killer, time.Since(r.began).Round(time.Millisecond))
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
