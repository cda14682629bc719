//go:build soak

package hub

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/e2e"
)

// A hub's memory does not grow with the number of its turns. The heap varies with caches, so the
// test compares the lowest of many values.
func TestAHubDoesNotGrowWithItsTurns(t *testing.T) {
	const (
		looks   = 48 // each after a batch of turns
		batch   = 504
		workers = 8
		growth  = 1.15 // of the last quarter relative to the second one
	)
	s := e2e.NewSite(t)
	s.Watchdog = 15 * time.Minute
	s.Agents("[agents.quick]\ndriver = \"command\"\ncommand = [\"true\", \"{prompt}\"]\n")
	c := s.Start()
	hub := e2e.HubOf(t, c)
	lowest := [4]float64{math.Inf(1), math.Inf(1), math.Inf(1), math.Inf(1)}
	for look := range looks {
		var work sync.WaitGroup
		for range workers {
			work.Go(func() {
				for range batch / workers {
					assert.NoError(t, c.Try("sendTask", object{"prompt": "p", "agent": "quick"}, nil))
				}
			})
		}
		work.Wait()
		anon := float64(e2e.MemoryOf(t, hub, "RssAnon")) / (1 << 20)
		quarter := look * len(lowest) / looks
		lowest[quarter] = min(lowest[quarter], anon)
		t.Logf("%d runs: %.1f MB", (look+1)*batch, anon)
	}
	assert.Less(t, lowest[3], growth*lowest[1], "lowest MB of each quarter: %.1f", lowest)
}

// wakes returns the number of voluntary context switches of a process, which is the number of its
// wakeups.
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

// The idle daemon and the idle processes of editors rarely wake, and take little memory.
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
type = "turn.failed"
action = { type = "notify", message = "m" }
`} {
		t.Run(name, func(t *testing.T) { // not in parallel, because the processes must be idle
			s := e2e.NewSite(t, configured)
			requireIdle(s, t)
		})
	}
}

func requireIdle(s *e2e.Site, t *testing.T) {
	t.Helper()
	const (
		window = 3 * time.Second
		most   = 3 // in a window; a timer of one second causes about 30
	)
	attached := s.Start()
	attached.Call("task.stats", object{}, nil)
	subscribed := s.Open()
	core := s.Start() // needs no daemon
	core.Call("ping", object{}, nil)
	daemon := e2e.HubOf(t, attached)
	pids := map[string]int{"the daemon": daemon, "an editor's process": attached.Cmd.Process.Pid, "a subscribed one": subscribed.Cmd.Process.Pid, "one that needs no daemon": core.Cmd.Process.Pid}
	limits := map[int]int{daemon: 25 << 20, attached.Cmd.Process.Pid: 12 << 20, subscribed.Cmd.Process.Pid: 12 << 20, core.Cmd.Process.Pid: 12 << 20}
	woken := map[string]int{}
	for deadline := time.Now().Add(20 * time.Second); len(pids) > 0 && time.Now().Before(deadline); { // the work after a start ends soon
		before := map[string]int{}
		for name, pid := range pids {
			before[name] = wakes(t, pid)
		}
		time.Sleep(window) // the test counts the wakeups in the window
		for name, pid := range pids {
			if woken[name] = wakes(t, pid) - before[name]; woken[name] <= most {
				delete(pids, name)
			}
		}
	}
	assert.Empty(t, pids, "times woken in %v: %v", window, woken)
	for pid, most := range limits {
		rests := e2e.MemoryOf(t, pid, "VmRSS")
		assert.Less(t, rests, most, "process %d of %d", pid, daemon)
		t.Logf("%.1f of %d MB", float64(rests)/(1<<20), most>>20)
	}
	for _, c := range []*e2e.Client{core, subscribed, attached} {
		c.Leave()
	}
}

// A daemon gives its memory back each time that it becomes idle: the pages of its program, of which its
// work needs most, and its free heap.
func TestAnIdleDaemonGivesItsMemoryBack(t *testing.T) {
	_, c := e2e.NewEditorSite(t)
	hub := e2e.HubOf(t, c)
	type memory struct{ program, heap int } // in bytes
	measure := func() memory {
		heap := e2e.MemoryOf(t, hub, "RssAnon")
		return memory{e2e.MemoryOf(t, hub, "VmRSS") - heap, heap}
	}
	for round := range 3 {
		done := make(chan struct{})
		go func() {
			defer close(done)
			c.Completes(c.Launch(fmt.Sprintf("quiet stream:5000 in round %d", round), ""))
		}()
		var works memory // the most of each
		for busy := true; busy; time.Sleep(e2e.PollEvery) {
			now := measure()
			works = memory{max(works.program, now.program), max(works.heap, now.heap)}
			select {
			case <-done:
				busy = false
			default:
			}
		}
		var idle memory
		isLess := func() bool {
			idle = measure()
			return idle.program < works.program/2 && idle.heap < works.heap
		}
		for deadline := time.Now().Add(e2e.Watchdog / 20); !isLess() && time.Now().Before(deadline); time.Sleep(e2e.PollEvery) {
		}
		const mb = 1 << 20
		t.Logf("at work: %d MB of the program and %d MB of others; idle: %d and %d", works.program/mb, works.heap/mb, idle.program/mb, idle.heap/mb)
		assert.Less(t, idle.program, works.program/2)
		assert.Less(t, idle.heap, works.heap)
	}
	c.Leave()
}

// countProcesses returns the number of processes with a text in their command, and the memory of all
// processes of the site in MB.
func countProcesses(s *e2e.Site, text string) (n int, memory float64) {
	for _, r := range s.Running() {
		if strings.Contains(r.Command, text) {
			n++
		}
		status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", r.PID))
		for line := range strings.Lines(string(status)) {
			if kilobytes, ok := strings.CutPrefix(line, "RssAnon:"); ok {
				kb, _ := strconv.ParseFloat(strings.Fields(kilobytes)[0], 64)
				memory += kb / 1024
			}
		}
	}
	return n, memory
}

// Duet keeps few agents of finished sessions.
func TestFinishedSessionsKeepFewAgents(t *testing.T) {
	t.Parallel()
	const tasks = 150
	s, c := e2e.NewEditorSite(t)
	_, before := countProcesses(s, "")
	var all []e2e.Launched
	for i := range tasks {
		all = append(all, c.Launch(fmt.Sprint("quiet number ", i), ""))
	}
	for _, l := range all {
		c.Completes(l)
	}
	agents, memory := countProcesses(s, "demo-agent")
	t.Logf("%d tasks: %d agents, %d processes, %.0f MB (%.0f before)", tasks, agents, len(s.Processes()), memory, before)
	require.Eventually(t, func() bool { n, _ := countProcesses(s, "demo-agent"); return n <= 3 }, time.Minute, e2e.PollEvery, "Duet keeps more agents than max_turns")
	_, memory = countProcesses(s, "")
	t.Logf("and then: %d processes, %.0f MB", len(s.Processes()), memory)
	c.Leave()
}

// The first hub request waits for the daemon's start, or only for a connection to a running daemon.
func TestFirstHubCall(t *testing.T) {
	fast := e2e.FastProgram(t)
	s := e2e.NewDaemonSite(t)
	s.Binary = fast
	const rounds = 20
	first := func() (took time.Duration) {
		editor := s.Start()
		editor.Call("ping", object{}, nil)
		began := time.Now()
		editor.Call("task.stats", object{}, nil)
		took = time.Since(began)
		editor.Leave()
		return took
	}
	var without, with []time.Duration
	for range rounds {
		without = append(without, first())
		with = append(with, first())
		s.Run("daemon", "stop")
		s.DaemonStays.Store(true)
	}
	slices.Sort(without)
	slices.Sort(with)
	t.Logf("no daemon: %v (%v to %v); a daemon: %v (%v to %v)", without[rounds/2], without[0], without[rounds-1], with[rounds/2], with[0], with[rounds-1])
	assert.Less(t, without[rounds/2], 120*time.Millisecond)
	assert.Less(t, with[rounds/2], 20*time.Millisecond)
}

// Many simultaneous file changes cause few events and take little memory.
func TestManyFilesThatChangeAreOneEvent(t *testing.T) {
	s := e2e.NewSite(e2e.Parallel(t))
	fast := e2e.FastProgram(t) // the test does not measure the race detector
	s.Binary = fast
	s.Agents("[[triggers]]\nid = \"files\"\nsource = \"watch\"\npaths = [\"src\"]\ndebounce = \"5s\"\naction = { type = \"notify\", message = \"{{payload.count}} files\" }\n")
	const dirs, files = 20, 1000
	for i := range dirs {
		require.NoError(t, os.MkdirAll(filepath.Join(s.Root, "src", fmt.Sprint(i)), 0o755))
	}
	editor := s.Open()
	require.Eventually(t, func() bool { return editor.Status().Subsystems.Watcher.Directories == dirs+2 }, e2e.Watchdog/3, e2e.PollEvery)
	hub := e2e.HubOf(t, editor)
	before := e2e.MemoryOf(t, hub, "VmHWM")
	began := time.Now()
	for i := range dirs {
		for j := range files {
			require.NoError(t, os.WriteFile(filepath.Join(s.Root, "src", fmt.Sprint(i), fmt.Sprint(j)), nil, 0o600))
		}
	}
	writing := time.Since(began)
	events, reported := 0, 0
	for reported < dirs*files {
		done := editor.Await("a trigger", func(e e2e.Event) bool { return e.Type == "trigger_executed" })
		var data struct{ Message string }
		require.NoError(t, json.Unmarshal(done.Raw, &data))
		n, err := strconv.Atoi(strings.TrimSuffix(data.Message, " files"))
		require.NoError(t, err)
		events, reported = events+1, reported+n
	}
	if events == 1 {
		assert.Equal(t, dirs*files, reported)
	} // otherwise the system may have dropped changes, and the hub reports the last minute again
	// The hub reports an event after 5 s without changes, or after half a minute of changes.
	assert.LessOrEqual(t, events, 1+int(writing/(5*time.Second)), "writing took %s", writing)
	after := e2e.MemoryOf(t, hub, "VmHWM")
	t.Logf("%d MiB at most, %d before", after>>20, before>>20)
	assert.Less(t, after-before, 48<<20)
	editor.Leave()
}
