//go:build unix

package e2e

import (
	"database/sql"
	"encoding/json"
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
	_ "modernc.org/sqlite" // the driver

	"github.com/duet-rpc/duet-rpc/internal/project"
	"github.com/duet-rpc/duet-rpc/internal/socket"
)

// A Site is a project with its own user. No other test sees its files, and its HOME identifies its
// processes.
type Site struct {
	T    testing.TB
	Root string // the project's directory
	Home string // unique on the machine
	Args []string
	Env  []string

	Binary string // another binary than Program; empty: Program

	Watchdog time.Duration // the limit for its processes; 0: the default

	// The site stops its daemon after the last client of Start or Command, because most tests
	// examine what a client leaves behind.
	Clients     *atomic.Int32
	DaemonStays *atomic.Bool // the test itself ends the daemon
	Others      *atomic.Bool // the site has uncounted clients, for which the daemon stays
}

// Patiently has the program wait for its hub as long as a slow machine needs. A later flag of a
// test wins.
const Patiently = "--answer-within=1m"

// Lately gives a working hub enough time to answer on a slow machine.
const Lately = "--answer-within=4s"

// NewSite returns a site whose default agent is the demo agent without pauses. The user's
// configuration also contains more.
func NewSite(t testing.TB, more ...string) *Site {
	t.Helper()
	dir := t.TempDir()
	s := &Site{T: t, Root: filepath.Join(
		dir, "project",
	), Home: filepath.Join(dir, "home"), Clients: new(atomic.Int32), DaemonStays: new(atomic.Bool), Others: new(atomic.Bool)}
	require.NoError(t, os.MkdirAll(s.Root, 0o755))
	require.NoError(t, os.MkdirAll(s.Home, 0o755))
	s.Agents(strings.Join(more, ""))
	t.Cleanup(func() {
		s.EndDaemons()
		s.RequireNobody("when the test has ended")
	})
	return s
}

// Agents writes the user's configuration: the demo agent, and more.
func (s *Site) Agents(more string) {
	s.T.Helper()
	agent := FastProgram(s.T)                          // the tests examine the agent's client
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
%s`, checkpoints, agent, filepath.Join(s.Home, "demo"), more)
	path := filepath.Join(s.Home, "config", "duet", "config.toml")
	WriteFile(s.T, path, text)
}

// State returns the project's state directory.
func (s *Site) State() string {
	root, err := filepath.EvalSymlinks(s.Root)
	if err != nil {
		root = s.Root
	}
	dir, err := project.StateDirOf(func(name string) string {
		return map[string]string{"XDG_STATE_HOME": filepath.Join(s.Home, "state")}[name]
	}, root)
	require.NoError(s.T, err)
	return dir
}

// Database returns the path of the database.
func (s *Site) Database() string { return filepath.Join(s.State(), "duet.db") }

// Launch returns the start of the program as an uncounted client.
func (s *Site) Launch(args ...string) Launch {
	s.Others.Store(true)
	l := s.counted()
	l.Args = append(args, l.Args...)
	return l
}

// ShellCommand returns a shell command in the project, as an uncounted client.
func (s *Site) ShellCommand(args ...string) *exec.Cmd {
	l := s.Launch()
	cmd := exec.Command(Program, append(l.Args, args...)...)
	cmd.Dir, cmd.Env = s.Root, append(append(CleanEnvironment(), Homeless(s.T)...), l.Env...)
	return cmd
}

// counted is Launch for a client that the caller counts.
func (s *Site) counted() Launch {
	return Launch{
		Binary: s.Binary,
		First:  []string{Patiently},
		Args:   append([]string{"--root", s.Root}, s.Args...),
		Env: append([]string{
			"HOME=" + s.Home, "DUET_DEMO_DELAY=0",
			"XDG_CONFIG_HOME=" + filepath.Join(s.Home, "config"), "XDG_STATE_HOME=" + filepath.Join(s.Home, "state"),
			"XDG_DATA_HOME=" + filepath.Join(s.Home, "data"), "XDG_CACHE_HOME=" + filepath.Join(s.Home, "cache"),
		}, s.Env...),
		Watchdog: s.Watchdog,
	}
}

// Start starts the program as an editor, and counts the client.
func (s *Site) Start() *Client {
	c := NewClient(s.counted().Start(s.T))
	c.site = s
	s.Clients.Add(1)
	c.Peer.Mu.Lock()
	defer c.Peer.Mu.Unlock()
	c.Patient = s.Watchdog * 2 / 3
	return c
}

// Open is Start with a subscription to all events.
func (s *Site) Open() *Client {
	s.T.Helper()
	c := s.Start()
	c.Subscribe()
	return c
}

// NewEditorSite returns a site and an editor with a subscription to all events.
func NewEditorSite(t testing.TB, more ...string) (*Site, *Client) {
	t.Helper()
	s := NewSite(t, more...)
	return s, s.Open()
}

// OpenDatabase opens the site's database. The caller only reads, or has ended the hub.
func (s *Site) OpenDatabase(query string) *sql.DB {
	s.T.Helper()
	db, err := sql.Open("sqlite", "file:"+s.Database()+query)
	require.NoError(s.T, err)
	s.T.Cleanup(func() { db.Close() })
	return db
}

// DaemonLog returns the log of the site's daemons.
func (s *Site) DaemonLog() string {
	log, _ := os.ReadFile(filepath.Join(s.State(), "daemon.log"))
	return string(log)
}

// left uncounts a client. After the last one it stops the hub, unless the test keeps the hub.
func (s *Site) left() {
	if s.Clients.Add(-1) <= 0 && !s.DaemonStays.Load() && !s.Others.Load() {
		stopHub(s.T, s.State())
	}
}

// EndDaemons stops the site's daemons, including those of other roots.
func (s *Site) EndDaemons() {
	states, _ := filepath.Glob(filepath.Join(filepath.Dir(filepath.Dir(s.State())), "projects", "*"))
	for _, dir := range states {
		stopHub(s.T, dir)
	}
}

// RequireNobody requires that the site's processes end. It stops the hub first, unless a client or
// the test keeps the hub.
func (s *Site) RequireNobody(when string) {
	s.T.Helper()
	if s.Clients.Load() <= 0 && !s.DaemonStays.Load() {
		stopHub(s.T, s.State())
	}
	var left []string
	require.Eventually(s.T, func() bool { left = s.Processes(); return len(left) == 0 }, time.Minute, 5*time.Millisecond,
		"processes are left %s: %s", when, Deferred(func() string { return strings.Join(left, "; ") }))
}

// Deferred is a failure message that String builds when the test prints it.
type Deferred func() string

func (d Deferred) String() string { return d() }

// Suspend sends SIGSTOP to a process and waits until all its threads have stopped.
// kill(2) returns earlier: on a busy machine the process can finish a turn first.
// Only Linux shows the state of threads.
func Suspend(t testing.TB, pid int) {
	t.Helper()
	require.NoError(t, syscall.Kill(pid, syscall.SIGSTOP))
	if runtime.GOOS != "linux" {
		return
	}
	require.Eventually(t, func() bool { return len(runningThreads(pid)) == 0 }, Watchdog, PollEvery,
		"process %d did not stop", pid)
}

// SuspendHub is Suspend for a daemon. The test's cleanup kills the daemon.
func SuspendHub(t testing.TB, pid int) {
	t.Helper()
	Suspend(t, pid)
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

// SocketPath returns the path of the hub's socket, also while no hub runs.
func (s *Site) SocketPath() string {
	s.T.Helper()
	path, err := socket.Find(s.State())
	require.NoError(s.T, err)
	return path
}

// Begin starts a daemon if none runs.
func (s *Site) Begin() {
	s.T.Helper()
	if (project.Project{StateDir: s.State()}).Unlocked() {
		stays := s.DaemonStays.Load()
		_, err := s.Command("daemon", "start")
		require.NoError(s.T, err)
		s.DaemonStays.Store(stays)
	}
}

// Lines returns a client on the project's own socket. It starts a daemon if none runs.
func (s *Site) Lines() *LineClient {
	s.T.Helper()
	s.Begin()
	return NewLineClient(s.T, s.SocketPath())
}

// LockHolder returns the process id in the hub's lock.
func (s *Site) LockHolder() int {
	s.T.Helper()
	text := ReadFile(s.T, s.State()+"/lock")
	pid, _ := strconv.Atoi(strings.TrimSpace(text))
	return pid
}

// CrashHub kills the hub and waits for the release of its lock. A client that needs a hub starts
// another.
func (s *Site) CrashHub() {
	s.T.Helper()
	pid := s.LockHolder()
	hub, err := os.FindProcess(pid)
	require.NoError(s.T, err)
	require.NoError(s.T, hub.Kill())
	s.AwaitRelease(pid)
}

// AwaitRelease waits until a process no longer holds the lock. The next process may take the lock
// before this function sees it free.
func (s *Site) AwaitRelease(pid int) {
	s.T.Helper()
	released := project.Project{StateDir: s.State()}.Released()
	for s.LockHolder() == pid {
		select {
		case <-released:
			return
		case <-time.After(PollEvery):
		}
	}
}

// HoldDatabase creates the site's database, and a transaction in it that blocks every other one.
func (s *Site) HoldDatabase() (release func()) {
	s.T.Helper()
	c := s.Open()
	c.Leave()
	db := s.OpenDatabase("?_txlock=immediate")
	s.T.Cleanup(func() { db.Close() })
	tx, err := db.Begin()
	require.NoError(s.T, err)
	return func() { _ = tx.Rollback() }
}

// Played adds the agent "played", which performs these steps for every prompt.
func (s *Site) Played(steps ...PlayedStep) {
	s.T.Helper()
	self, err := os.Executable()
	require.NoError(s.T, err)
	raw, err := json.Marshal(steps)
	require.NoError(s.T, err)
	file := filepath.Join(s.Home, "play.json")
	require.NoError(s.T, os.WriteFile(file, raw, 0o600))
	s.Agents(fmt.Sprintf("[agents.played]\ndriver = \"acp\"\ncommand = [%q]\nenv = { %s = %q }\n", self, playedVariable, file))
}
