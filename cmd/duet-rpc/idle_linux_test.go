//go:build soak

package main_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// wakes is how often threads of a process have gone to sleep so far, which is how
// often they were awake.
func wakes(t *testing.T, pid int) (n int) {
	t.Helper()
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/status", pid))
	require.NoError(t, err)
	require.NotEmpty(t, threads)
	for _, path := range threads {
		status, _ := os.ReadFile(path)
		for line := range strings.Lines(string(status)) {
			if value, ok := strings.CutPrefix(line, "voluntary_ctxt_switches:"); ok {
				k, err := strconv.Atoi(strings.TrimSpace(value))
				require.NoError(t, err)
				n += k
			}
		}
	}
	return n
}

// Processes that do nothing let a laptop sleep, and take little memory: the daemon, and editors'
// processes.
func TestIdleProcessesDoNotWake(t *testing.T) {
	t.Parallel()
	for name, configured := range map[string]string{"as they are": "", "with triggers": `
[[triggers]]
id = "files"
source = "watch"
action = { type = "notify", message = "m" }
[[triggers]]
id = "yearly"
cron = "0 0 29 2 *"
action = { type = "notify", message = "m" }
[[triggers]]
id = "runs"
type = "run.failed"
action = { type = "notify", message = "m" }
`} {
		t.Run(name, func(t *testing.T) { // one after the other: they are to be idle
			s := newSite(t)
			s.agents(configured)
			s.requireIdle(t)
		})
	}
}

func (s *site) requireIdle(t *testing.T) {
	t.Helper()
	const (
		window = 3 * time.Second
		most   = 3 // in a window; a timer of a second makes some 30
	)
	attached := s.start()
	attached.call("task.stats", object{}, nil)
	subscribed := s.start()
	subscribed.subscribe()
	core := s.start() // needs no daemon
	core.call("ping", object{}, nil)
	daemon := hubOf(t, attached)
	pids := map[string]int{"the daemon": daemon, "an editor's process": attached.cmd.Process.Pid, "a subscribed one": subscribed.cmd.Process.Pid, "one that needs no daemon": core.cmd.Process.Pid}
	limits := map[int]int{daemon: 25 << 20, attached.cmd.Process.Pid: 12 << 20, subscribed.cmd.Process.Pid: 12 << 20, core.cmd.Process.Pid: 12 << 20}
	woken := map[string]int{}
	for deadline := time.Now().Add(20 * time.Second); len(pids) > 0 && time.Now().Before(deadline); { // what is done once after the start is over soon
		before := map[string]int{}
		for name, pid := range pids {
			before[name] = wakes(t, pid)
		}
		time.Sleep(window) // what is counted is what happens in it
		for name, pid := range pids {
			if woken[name] = wakes(t, pid) - before[name]; woken[name] <= most {
				delete(pids, name)
			}
		}
	}
	assert.Empty(t, pids, "times woken in %v: %v", window, woken)
	for pid, most := range limits {
		rests := memoryOf(t, pid, "VmRSS")
		assert.Less(t, rests, most, "process %d of %d", pid, daemon)
		t.Logf("%.1f of %d MB", float64(rests)/(1<<20), most>>20)
	}
	for _, c := range []*client{core, subscribed, attached} {
		c.leave()
	}
}
