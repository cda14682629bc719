//go:build unix

package main_test

import (
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/project"
)

// A site is a project with a user of its own: nothing that a test does there
// is seen by another test, and what it starts is recognized by its HOME.
type site struct {
	t    testing.TB
	root string // of the project
	home string // no other process on the machine has this one
	args []string
	env  []string

	binary string // the program, if it is not the one with the race detector

	watchdog time.Duration // of its processes; 0: that of all

	// Most tests are about what one leaves behind: their daemon ends with the last client that
	// they started with start or command.
	clients     *atomic.Int32
	daemonStays *atomic.Bool // until the test ends it
	others      *atomic.Bool // there are clients that are not counted: the daemon stays for them
}

// patiently has the program wait for its hub as long as a slow machine may take,
// unless a test says otherwise: then it goes on to say so.
const patiently = "--answer-within=1m"

// newSite makes a project whose default agent is the demo agent, without its
// pauses.
func newSite(t testing.TB) *site {
	t.Helper()
	dir := t.TempDir()
	s := &site{t: t, root: filepath.Join(dir, "project"), home: filepath.Join(dir, "home"), clients: new(atomic.Int32), daemonStays: new(atomic.Bool), others: new(atomic.Bool)}
	require.NoError(t, os.MkdirAll(s.root, 0o755))
	require.NoError(t, os.MkdirAll(s.home, 0o755))
	s.agents("")
	t.Cleanup(func() {
		s.endDaemons()
		s.requireNobody("when the test has ended")
	})
	return s
}

// speaks1 keeps the demo agent at version 1 of the protocol, in which the client reads
// and writes files.
func (s *site) speaks1() {
	s.t.Helper()
	path := filepath.Join(s.home, "config", "duet", "config.toml")
	text := readFile(s.t, path)
	text = strings.Replace(text, `"demo-agent"]`, `"demo-agent", "--protocol", "1"]`, 1)
	require.NoError(s.t, os.WriteFile(path, []byte(text), 0o600))
}

// agents writes the user's configuration: the demo agent, and more.
func (s *site) agents(more string) {
	s.t.Helper()
	agent := fastProgram(s.t)                          // what is tested is who runs it
	checkpoints := "checkpoints = { enabled = false }" // they start git for each prompt
	if strings.Contains(more, "[checkpoints]") {
		checkpoints = ""
	}
	text := fmt.Sprintf(`default_agent = "scripted"
%s
[agents.scripted]
driver = "acp"
command = [%q, "demo-agent"]
env = { DUET_DEMO_DELAY = "0", DUET_DEMO_STATE = %q }
%s`, checkpoints, agent, filepath.Join(s.home, "demo"), more)
	path := filepath.Join(s.home, "config", "duet", "config.toml")
	require.NoError(s.t, os.MkdirAll(filepath.Dir(path), 0o700))
	require.NoError(s.t, os.WriteFile(path, []byte(text), 0o600))
}

// state is the project's state directory.
func (s *site) state() string {
	root, err := filepath.EvalSymlinks(s.root)
	if err != nil {
		root = s.root
	}
	dir, err := project.StateDirOf(func(name string) string {
		return map[string]string{"XDG_STATE_HOME": filepath.Join(s.home, "state")}[name]
	}, root)
	require.NoError(s.t, err)
	return dir
}

func (s *site) database() string { return filepath.Join(s.state(), "duet.db") }

// launch is how the program is started there, as a client that is not counted.
func (s *site) launch() launch {
	s.others.Store(true)
	return s.counted()
}

// counted is launch for a client that is counted.
func (s *site) counted() launch {
	return launch{
		binary: s.binary,
		first:  []string{patiently},
		args:   append([]string{"--root", s.root}, s.args...),
		env: append([]string{
			"HOME=" + s.home, "DUET_DEMO_DELAY=0",
			"XDG_CONFIG_HOME=" + filepath.Join(s.home, "config"), "XDG_STATE_HOME=" + filepath.Join(s.home, "state"),
			"XDG_DATA_HOME=" + filepath.Join(s.home, "data"), "XDG_CACHE_HOME=" + filepath.Join(s.home, "cache"),
		}, s.env...),
		watchdog: s.watchdog,
	}
}

// start starts the program with a client.
func (s *site) start() *client {
	c := newClient(s.counted().start(s.t))
	c.site = s
	s.clients.Add(1)
	c.peer.mu.Lock()
	defer c.peer.mu.Unlock()
	c.patient = s.watchdog * 2 / 3
	return c
}

// open starts the program with a client that sees all events.
func (s *site) open() *client {
	s.t.Helper()
	c := s.start()
	c.subscribe()
	return c
}

// newEditorSite makes a site with a client that sees all events.
func newEditorSite(t testing.TB) (*site, *client) {
	t.Helper()
	s := newSite(t)
	return s, s.open()
}

// openDatabase opens the database of the site, which must not be in use or is only read.
func (s *site) openDatabase(query string) *sql.DB {
	s.t.Helper()
	db, err := sql.Open("sqlite", "file:"+s.database()+query)
	require.NoError(s.t, err)
	s.t.Cleanup(func() { db.Close() })
	return db
}

// daemonLog returns what the daemons of the site have logged.
func (s *site) daemonLog() string {
	log, _ := os.ReadFile(filepath.Join(s.state(), "daemon.log"))
	return string(log)
}

// left notes that a client has gone.
func (s *site) left() {
	if s.clients.Add(-1) <= 0 && !s.daemonStays.Load() && !s.others.Load() {
		stopHub(s.t, s.state())
	}
}

// endDaemons ends the daemons of the site, also those of other roots.
func (s *site) endDaemons() {
	states, _ := filepath.Glob(filepath.Join(filepath.Dir(filepath.Dir(s.state())), "projects", "*"))
	for _, dir := range states {
		stopHub(s.t, dir)
	}
}

// requireNobody requires that nothing of what was started there lives.
func (s *site) requireNobody(when string) {
	s.t.Helper()
	if s.clients.Load() <= 0 && !s.daemonStays.Load() {
		stopHub(s.t, s.state())
	}
	var left []string
	require.Eventually(s.t, func() bool { left = s.processes(); return len(left) == 0 }, time.Minute, 5*time.Millisecond,
		"processes are left %s: %s", when, deferred(func() string { return strings.Join(left, "; ") }))
}

// deferred is a text that is made when it is printed.
type deferred func() string

func (d deferred) String() string { return d() }

// suspend sends SIGSTOP to a process and waits until all its threads have stopped.
// kill(2) returns earlier: on a busy machine the process can finish a turn first.
// Only Linux shows the state of threads.
func suspend(t testing.TB, pid int) {
	t.Helper()
	require.NoError(t, syscall.Kill(pid, syscall.SIGSTOP))
	if runtime.GOOS != "linux" {
		return
	}
	require.Eventually(t, func() bool { return len(runningThreads(pid)) == 0 }, watchdog, pollEvery,
		"process %d did not stop", pid)
}

// runningThreads returns the threads of a process that are not stopped.
func runningThreads(pid int) (running []string) {
	stats, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid))
	for _, path := range stats {
		stat, err := os.ReadFile(path)
		if err != nil { // the thread has ended
			continue
		}
		// The state follows the name, which is in parentheses and may hold any sign.
		_, state, _ := strings.Cut(string(stat[strings.LastIndexByte(string(stat), ')'):]), " ")
		if !strings.HasPrefix(state, "T") && !strings.HasPrefix(state, "Z") {
			running = append(running, path)
		}
	}
	return running
}
