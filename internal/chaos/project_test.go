//go:build linux && soak

package chaos

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/client"
	"github.com/duet-rpc/duet-rpc/internal/procenv"
	state "github.com/duet-rpc/duet-rpc/internal/project"
	"github.com/duet-rpc/duet-rpc/internal/socket"
)

// A project is a directory with its own home. HOME identifies its processes.
type project struct {
	dir, root, home string
	state           string // the project's state directory
	agents          string // the directory of the agents' files
	log             *os.File
}

func newProject(t *testing.T) *project {
	t.Helper()
	dir := t.TempDir()
	p := &project{dir: dir, root: filepath.Join(dir, "project"), home: filepath.Join(dir, "home"), agents: filepath.Join(dir, "agents")}
	for _, d := range []string{p.root, filepath.Join(p.home, "config", "duet"), filepath.Join(p.agents, "sessions"), filepath.Join(p.agents, "memory")} {
		require.NoError(t, os.MkdirAll(d, 0o700))
	}
	var err error
	p.state, err = state.StateDirOf(func(name string) string {
		return map[string]string{"XDG_STATE_HOME": filepath.Join(p.home, "state")}[name]
	}, p.root)
	require.NoError(t, err)
	self, err := os.Executable()
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(p.home, "config", "duet", "config.toml"), fmt.Appendf(nil, `default_agent = "scripted"
[limits]
max_turns = 6
[agents.scripted]
driver = "acp"
command = [%[1]q]
env = { %[2]s = %[3]q, GORACE = "atexit_sleep_ms=0" }
[agents.editing]
driver = "acp"
command = [%[1]q]
env = { %[2]s = %[3]q, %[4]s = "1", GORACE = "atexit_sleep_ms=0" }
`, self, agentVariable, p.agents, version1Variable), 0o600))
	for _, name := range reviewedFiles {
		require.NoError(t, os.WriteFile(filepath.Join(p.root, name), []byte(textBefore), 0o600))
	}
	p.log, err = os.OpenFile(filepath.Join(dir, "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	require.NoError(t, err)
	t.Cleanup(func() {
		for _, r := range p.running() {
			_ = r.kill() // after a failed test
		}
		p.log.Close()
	})
	return p
}

// socket returns the path of the hub's socket, or "" without one.
func (p *project) socket() string {
	path, err := socket.Find(p.state)
	if err != nil {
		return ""
	}
	return path
}

func (p *project) database() string { return filepath.Join(p.state, "duet.db") }

// environment returns the environment of the project's processes.
func (p *project) environment() []string {
	env := slices.DeleteFunc(os.Environ(), func(entry string) bool {
		return strings.HasPrefix(entry, "DUET_") || strings.HasPrefix(entry, "XDG_")
	})
	return append(env, "HOME="+p.home, "XDG_CONFIG_HOME="+filepath.Join(p.home, "config"), "XDG_STATE_HOME="+filepath.Join(p.home, "state"))
}

// editor returns the process that an editor starts.
func (p *project) editor() *client.Process {
	return &client.Process{
		Path: program, Args: []string{"--root", p.root, "--log-level", "info"}, Dir: p.root, Env: p.environment(),
		Stderr: p.log,
	}
}

// hub returns the pid of the process that holds the project's lock, or 0.
func (p *project) hub() int {
	content, _ := os.ReadFile(filepath.Join(p.state, "lock"))
	pid, _ := strconv.Atoi(strings.TrimSpace(string(content)))
	if pid <= 1 {
		return 0
	}
	// The file outlives its process, and another process may have the pid now.
	if environment, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "environ")); err != nil || !p.owns(environment) {
		return 0
	}
	return pid
}

// owns reports whether an environment belongs to a process of the project.
func (p *project) owns(environment []byte) bool {
	want := []byte("HOME=" + p.home)
	for variable := range bytes.SplitSeq(environment, []byte{0}) {
		if bytes.Equal(variable, want) {
			return true
		}
	}
	return false
}

// The kinds of processes.
const (
	aHub      = "hub"
	aRelay    = "relay"
	anExec    = "executor"
	anAgent   = "agent"
	aShell    = "shell"
	stoppedIt = "hub stopped for a moment"
)

// A running is a process of the project.
type running struct {
	pid     int
	kind    string
	command string
}

func (r running) kill() error {
	process, err := os.FindProcess(r.pid)
	if err != nil {
		return err
	}
	return process.Kill()
}

func (r running) String() string { return fmt.Sprintf("%d %s: %s", r.pid, r.kind, r.command) }

// running lists the processes of the project.
func (p *project) running() (list []running) {
	hub := p.hub()
	home := "HOME=" + p.home
	for _, pid := range procenv.Find(func(variable string) bool { return variable == home }) {
		dir := fmt.Sprintf("/proc/%d", pid)
		environment, err := os.ReadFile(filepath.Join(dir, "environ"))
		if err != nil {
			continue // the process has gone
		}
		content, _ := os.ReadFile(filepath.Join(dir, "cmdline"))
		command := strings.ReplaceAll(string(bytes.TrimRight(content, "\x00")), "\x00", " ")
		if command == "" {
			continue // a zombie process
		}
		r := running{pid: pid, command: command, kind: aRelay}
		switch {
		case bytes.Contains(environment, []byte("\x00DUET_AGENT_MARK=")) || bytes.HasPrefix(environment, []byte("DUET_AGENT_MARK=")):
			r.kind = anAgent
		case strings.Contains(command, " executor"):
			r.kind = anExec
		case strings.Contains(command, " approvals"):
			r.kind = aShell
		case r.pid == hub:
			r.kind = aHub
		}
		list = append(list, r)
	}
	return list
}
