//go:build linux && soak

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
