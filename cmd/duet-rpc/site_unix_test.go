//go:build unix

package main_test

import (
	"database/sql"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/project"
	"github.com/duet-rpc/duet-rpc/internal/socket"
)

// A site is a project with its own user. No other test sees its files, and its HOME identifies its
// processes.
type site struct {
	t    testing.TB
	root string // the project's directory
	home string // unique on the machine
	args []string
	env  []string

	binary string // another binary than program; empty: program

	watchdog time.Duration // the limit for its processes; 0: the default

	// The site stops its daemon after the last client of start or command, because most tests
	// examine what a client leaves behind.
	clients     *atomic.Int32
	daemonStays *atomic.Bool // the test itself ends the daemon
	others      *atomic.Bool // the site has uncounted clients, for which the daemon stays
}

// patiently has the program wait for its hub as long as a slow machine needs. A later flag of a
// test wins.
const patiently = "--answer-within=1m"

// newSite returns a site whose default agent is the demo agent without pauses. The user's
// configuration also contains more.
func newSite(t testing.TB, more ...string) *site {
	t.Helper()
	dir := t.TempDir()
	s := &site{t: t, root: filepath.Join(dir, "project"), home: filepath.Join(dir, "home"), clients: new(atomic.Int32), daemonStays: new(atomic.Bool), others: new(atomic.Bool)}
	require.NoError(t, os.MkdirAll(s.root, 0o755))
	require.NoError(t, os.MkdirAll(s.home, 0o755))
	s.agents(strings.Join(more, ""))
	t.Cleanup(func() {
		s.endDaemons()
		s.requireNobody("when the test has ended")
	})
	return s
}

// agents writes the user's configuration: the demo agent, and more.
func (s *site) agents(more string) {
	s.t.Helper()
	agent := fastProgram(s.t)                          // the tests examine the agent's client
	checkpoints := "checkpoints = { enabled = false }" // checkpoints run git for each prompt
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
	writeFile(s.t, path, text)
}

// state returns the project's state directory.
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

// launch returns the start of the program as an uncounted client.
func (s *site) launch(args ...string) launch {
	s.others.Store(true)
	l := s.counted()
	l.args = append(args, l.args...)
	return l
}

// shellCommand returns a shell command in the project, as an uncounted client.
func (s *site) shellCommand(args ...string) *exec.Cmd {
	l := s.launch()
	cmd := exec.Command(program, append(l.args, args...)...)
	cmd.Dir, cmd.Env = s.root, append(append(cleanEnvironment(), homeless(s.t)...), l.env...)
	return cmd
}

// counted is launch for a client that the caller counts.
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

// start starts the program as an editor, and counts the client.
func (s *site) start() *client {
	c := newClient(s.counted().start(s.t))
	c.site = s
	s.clients.Add(1)
	c.peer.mu.Lock()
	defer c.peer.mu.Unlock()
	c.patient = s.watchdog * 2 / 3
	return c
}

// open is start with a subscription to all events.
func (s *site) open() *client {
	s.t.Helper()
	c := s.start()
	c.subscribe()
	return c
}

// newEditorSite returns a site and an editor with a subscription to all events.
func newEditorSite(t testing.TB, more ...string) (*site, *client) {
	t.Helper()
	s := newSite(t, more...)
	return s, s.open()
}

// openDatabase opens the site's database. The caller only reads, or has ended the hub.
func (s *site) openDatabase(query string) *sql.DB {
	s.t.Helper()
	db, err := sql.Open("sqlite", "file:"+s.database()+query)
	require.NoError(s.t, err)
	s.t.Cleanup(func() { db.Close() })
	return db
}

// daemonLog returns the log of the site's daemons.
func (s *site) daemonLog() string {
	log, _ := os.ReadFile(filepath.Join(s.state(), "daemon.log"))
	return string(log)
}

// left uncounts a client. After the last one it stops the hub, unless the test keeps the hub.
func (s *site) left() {
	if s.clients.Add(-1) <= 0 && !s.daemonStays.Load() && !s.others.Load() {
		stopHub(s.t, s.state())
	}
}

// endDaemons stops the site's daemons, including those of other roots.
func (s *site) endDaemons() {
	states, _ := filepath.Glob(filepath.Join(filepath.Dir(filepath.Dir(s.state())), "projects", "*"))
	for _, dir := range states {
		stopHub(s.t, dir)
	}
}

// requireNobody requires that the site's processes end. It stops the hub first, unless a client or
// the test keeps the hub.
func (s *site) requireNobody(when string) {
	s.t.Helper()
	if s.clients.Load() <= 0 && !s.daemonStays.Load() {
		stopHub(s.t, s.state())
	}
	var left []string
	require.Eventually(s.t, func() bool { left = s.processes(); return len(left) == 0 }, time.Minute, 5*time.Millisecond,
		"processes are left %s: %s", when, deferred(func() string { return strings.Join(left, "; ") }))
}

// deferred is a failure message that String builds when the test prints it.
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

// suspendHub is suspend for a daemon. The test's cleanup kills the daemon.
func suspendHub(t testing.TB, pid int) {
	t.Helper()
	suspend(t, pid)
	t.Cleanup(func() { _ = syscall.Kill(pid, syscall.SIGKILL) })
}

// runningThreads returns the threads of a process that are not stopped.
func runningThreads(pid int) (running []string) {
	stats, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid))
	for _, path := range stats {
		stat, err := os.ReadFile(path)
		if err != nil { // the thread has ended
			continue
		}
		// The state follows the name, which is in parentheses and may contain any character.
		_, state, _ := strings.Cut(string(stat[strings.LastIndexByte(string(stat), ')'):]), " ")
		if !strings.HasPrefix(state, "T") && !strings.HasPrefix(state, "Z") {
			running = append(running, path)
		}
	}
	return running
}

// socketPath returns the path of the hub's socket, also while no hub runs.
func (s *site) socketPath() string {
	s.t.Helper()
	path, err := socket.Find(s.state())
	require.NoError(s.t, err)
	return path
}

// begin starts a daemon if none runs.
func (s *site) begin() {
	s.t.Helper()
	if (project.Project{StateDir: s.state()}).Unlocked() {
		stays := s.daemonStays.Load()
		_, err := s.command("daemon", "start")
		require.NoError(s.t, err)
		s.daemonStays.Store(stays)
	}
}

// lines returns a client on the project's own socket. It starts a daemon if none runs.
func (s *site) lines() *lineClient {
	s.t.Helper()
	s.begin()
	return newLineClient(s.t, s.socketPath())
}

// lockHolder returns the process id in the hub's lock.
func (s *site) lockHolder() int {
	s.t.Helper()
	text := readFile(s.t, s.state()+"/lock")
	pid, _ := strconv.Atoi(strings.TrimSpace(text))
	return pid
}

// crashHub kills the hub and waits for the release of its lock. A client that needs a hub starts
// another.
func (s *site) crashHub() {
	s.t.Helper()
	pid := s.lockHolder()
	hub, err := os.FindProcess(pid)
	require.NoError(s.t, err)
	require.NoError(s.t, hub.Kill())
	s.awaitRelease(pid)
}

// awaitRelease waits until a process no longer holds the lock. The next process may take the lock
// before this function sees it free.
func (s *site) awaitRelease(pid int) {
	s.t.Helper()
	released := project.Project{StateDir: s.state()}.Released()
	for s.lockHolder() == pid {
		select {
		case <-released:
			return
		case <-time.After(pollEvery):
		}
	}
}
