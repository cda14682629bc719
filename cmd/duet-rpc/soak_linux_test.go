//go:build soak

package main_test

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
)

// A hub's memory does not grow with the number of its runs. The heap varies with caches, so the
// test compares the lowest of many values.
func TestAHubDoesNotGrowWithItsTurns(t *testing.T) {
	const (
		looks   = 48 // each after a batch of runs
		batch   = 504
		workers = 8
		growth  = 1.15 // of the last quarter relative to the second one
	)
	s := newSite(t)
	s.watchdog = 15 * time.Minute
	s.agents("[agents.quick]\ndriver = \"command\"\ncommand = [\"true\", \"{prompt}\"]\n")
	c := s.start()
	hub := hubOf(t, c)
	lowest := [4]float64{math.Inf(1), math.Inf(1), math.Inf(1), math.Inf(1)}
	for look := range looks {
		var work sync.WaitGroup
		for range workers {
			work.Go(func() {
				for range batch / workers {
					assert.NoError(t, c.try("sendTask", object{"prompt": "p", "agent": "quick"}, nil))
				}
			})
		}
		work.Wait()
		anon := float64(memoryOf(t, hub, "RssAnon")) / (1 << 20)
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
			s := newSite(t, configured)
			s.requireIdle(t)
		})
	}
}

func (s *site) requireIdle(t *testing.T) {
	t.Helper()
	const (
		window = 3 * time.Second
		most   = 3 // in a window; a timer of one second causes about 30
	)
	attached := s.start()
	attached.call("task.stats", object{}, nil)
	subscribed := s.open()
	core := s.start() // needs no daemon
	core.call("ping", object{}, nil)
	daemon := hubOf(t, attached)
	pids := map[string]int{"the daemon": daemon, "an editor's process": attached.cmd.Process.Pid, "a subscribed one": subscribed.cmd.Process.Pid, "one that needs no daemon": core.cmd.Process.Pid}
	limits := map[int]int{daemon: 25 << 20, attached.cmd.Process.Pid: 12 << 20, subscribed.cmd.Process.Pid: 12 << 20, core.cmd.Process.Pid: 12 << 20}
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
		rests := memoryOf(t, pid, "VmRSS")
		assert.Less(t, rests, most, "process %d of %d", pid, daemon)
		t.Logf("%.1f of %d MB", float64(rests)/(1<<20), most>>20)
	}
	for _, c := range []*client{core, subscribed, attached} {
		c.leave()
	}
}

// A daemon gives its memory back each time that it becomes idle: the pages of its program, of which its
// work needs most, and its free heap.
func TestAnIdleDaemonGivesItsMemoryBack(t *testing.T) {
	_, c := newEditorSite(t)
	hub := hubOf(t, c)
	type memory struct{ program, heap int } // in bytes
	measure := func() memory {
		heap := memoryOf(t, hub, "RssAnon")
		return memory{memoryOf(t, hub, "VmRSS") - heap, heap}
	}
	for round := range 3 {
		done := make(chan struct{})
		go func() {
			defer close(done)
			c.completes(c.launch(fmt.Sprintf("quiet stream:5000 in round %d", round), ""))
		}()
		var works memory // the most of each
		for busy := true; busy; time.Sleep(pollEvery) {
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
		for deadline := time.Now().Add(watchdog / 20); !isLess() && time.Now().Before(deadline); time.Sleep(pollEvery) {
		}
		const mb = 1 << 20
		t.Logf("at work: %d MB of the program and %d MB of others; idle: %d and %d", works.program/mb, works.heap/mb, idle.program/mb, idle.heap/mb)
		assert.Less(t, idle.program, works.program/2)
		assert.Less(t, idle.heap, works.heap)
	}
	c.leave()
}

// count returns the number of processes with a text in their command, and the memory of all
// processes of the site in MB.
func (s *site) count(text string) (n int, memory float64) {
	for _, r := range s.running() {
		if strings.Contains(r.command, text) {
			n++
		}
		status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", r.pid))
		for line := range strings.Lines(string(status)) {
			if kilobytes, ok := strings.CutPrefix(line, "RssAnon:"); ok {
				kb, _ := strconv.ParseFloat(strings.Fields(kilobytes)[0], 64)
				memory += kb / 1024
			}
		}
	}
	return n, memory
}

// Duet keeps few agents of finished conversations.
func TestFinishedConversationsKeepFewAgents(t *testing.T) {
	t.Parallel()
	const tasks = 150
	s, c := newEditorSite(t)
	_, before := s.count("")
	var all []launched
	for i := range tasks {
		all = append(all, c.launch(fmt.Sprint("quiet number ", i), ""))
	}
	for _, l := range all {
		c.completes(l)
	}
	agents, memory := s.count("demo-agent")
	t.Logf("%d tasks: %d agents, %d processes, %.0f MB (%.0f before)", tasks, agents, len(s.processes()), memory, before)
	require.Eventually(t, func() bool { n, _ := s.count("demo-agent"); return n <= 3 }, time.Minute, pollEvery, "Duet keeps more agents than max_turns")
	_, memory = s.count("")
	t.Logf("and then: %d processes, %.0f MB", len(s.processes()), memory)
	c.leave()
}

// The prompt box of a conversation appears soon and shows typed keys while the agent streams. An
// answer of 5 MB takes at most 1.5 times as long as without the box.
func TestAConversationKeepsUpWithItsAgent(t *testing.T) {
	const (
		starts   = 20
		soon     = 50 * time.Millisecond
		deltas   = 20_000
		rate     = 2000    // a second
		long     = 450_000 // deltas of an answer of 5 MB
		slowdown = 1.5     // of a long answer relative to one without the box
	)
	s := newDaemonSite(t)
	s.watchdog = 5 * time.Minute
	s.env = append(s.env, "DUET_DEMO_DELAY=0")
	s.run("prompt", "quiet first")

	var took []time.Duration
	for range starts {
		begun := time.Now()
		p := s.talk(t)
		p.sees(idleFooter)
		took = append(took, time.Since(begun))
		p.presses("\x04")
		<-p.ended
	}
	slices.Sort(took)
	t.Logf("start to the prompt box: median %v, longest %v", took[starts/2], took[starts-1])
	assert.Less(t, took[starts/2], soon)

	p := s.talk(t)
	p.sees(idleFooter)
	begun := time.Now()
	p.presses(fmt.Sprintf("quiet stream:%d@%d\r", deltas, rate), "chunk 100 ")
	typed := time.Now()
	p.presses("typed", "typed")
	t.Logf("a key is shown after %v while %d deltas a second come", time.Since(typed), rate)
	p.sees("tokens")
	t.Logf("%d deltas at %d a second: %v", deltas, rate, time.Since(begun))
	assert.Less(t, time.Since(begun), deltas/rate*time.Second*3/2)
	p.sees(idleFooter)

	prompt := fmt.Sprintf("quiet stream:%d", long)
	begun = time.Now()
	once := s.talk(t, "prompt", prompt)
	once.sees("go on with")
	plain := time.Since(begun)
	<-once.ended
	size := len(once.tty.printed.String())
	begun = time.Now()
	p.presses("\x15"+prompt+"\r", "tokens")
	boxed := time.Since(begun)
	t.Logf("an answer of %d bytes: %v without the box, %v with it", size, plain, boxed)
	assert.Less(t, boxed.Seconds(), slowdown*plain.Seconds())
	p.sees(idleFooter)
	p.leaves()
}

// The first hub request waits for the daemon's start, or only for a connection to a running daemon.
func TestFirstHubCall(t *testing.T) {
	fast := fastProgram(t)
	s := newDaemonSite(t)
	s.binary = fast
	const rounds = 20
	first := func() (took time.Duration) {
		editor := s.start()
		editor.call("ping", object{}, nil)
		began := time.Now()
		editor.call("task.stats", object{}, nil)
		took = time.Since(began)
		editor.leave()
		return took
	}
	var without, with []time.Duration
	for range rounds {
		without = append(without, first())
		with = append(with, first())
		s.run("daemon", "stop")
		s.daemonStays.Store(true)
	}
	slices.Sort(without)
	slices.Sort(with)
	t.Logf("no daemon: %v (%v to %v); a daemon: %v (%v to %v)", without[rounds/2], without[0], without[rounds-1], with[rounds/2], with[0], with[rounds-1])
	assert.Less(t, without[rounds/2], 120*time.Millisecond)
	assert.Less(t, with[rounds/2], 20*time.Millisecond)
}

// Many simultaneous file changes cause few events and take little memory.
func TestManyFilesThatChangeAreOneEvent(t *testing.T) {
	s := newSite(parallel(t))
	fast := fastProgram(t) // the test does not measure the race detector
	s.binary = fast
	s.agents("[[triggers]]\nid = \"files\"\nsource = \"watch\"\npaths = [\"src\"]\ndebounce = \"5s\"\naction = { type = \"notify\", message = \"{{payload.count}} files\" }\n")
	const dirs, files = 20, 1000
	for i := range dirs {
		require.NoError(t, os.MkdirAll(filepath.Join(s.root, "src", fmt.Sprint(i)), 0o755))
	}
	editor := s.open()
	require.Eventually(t, func() bool { return editor.status().Subsystems.Watcher.Directories == dirs+2 }, watchdog/3, pollEvery)
	hub := hubOf(t, editor)
	before := memoryOf(t, hub, "VmHWM")
	began := time.Now()
	for i := range dirs {
		for j := range files {
			require.NoError(t, os.WriteFile(filepath.Join(s.root, "src", fmt.Sprint(i), fmt.Sprint(j)), nil, 0o600))
		}
	}
	writing := time.Since(began)
	events, reported := 0, 0
	for reported < dirs*files {
		done := editor.await("a trigger", func(e event) bool { return e.Type == "trigger_executed" })
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
	after := memoryOf(t, hub, "VmHWM")
	t.Logf("%d MiB at most, %d before", after>>20, before>>20)
	assert.Less(t, after-before, 48<<20)
	editor.leave()
}
