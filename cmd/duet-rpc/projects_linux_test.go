package main_test

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/project"
	"github.com/duet-rpc/duet-rpc/internal/testkit"
)

// oneAtATime limits a hub to one run at a time.
const oneAtATime = "[limits]\nmax_turns = 1\n"

// copyTo copies the project with `cp -a` and returns the copy, which has the same home.
func (s *site) copyTo(name string) *site {
	s.t.Helper()
	copied := *s
	copied.root = filepath.Join(filepath.Dir(s.root), name)
	out, err := exec.Command("cp", "-a", s.root, copied.root).CombinedOutput() // machine: every Linux has cp
	require.NoError(s.t, err, "%s", out)
	return &copied
}

// A copy of a project with a busy hub starts without history and does not affect the original.
func TestACopyOfAProjectAtWork(t *testing.T) {
	s, c := newEditorSite(parallel(t))
	running := c.launch("stream:1000000@200", "")
	c.awaitState(running.SessionID, "running")
	others := s.copyTo("other")

	_, err := others.command("daemon", "stop", "--force")
	require.ErrorContains(t, err, "no hub runs here")
	editor := others.open()
	editor.refused("getSessionState", object{"session_id": running.SessionID})
	editor.requireNoIssue()
	editor.runs("quiet")
	assert.NotEqual(t, hubOf(t, c), hubOf(t, editor))
	editor.leave()
	assert.Equal(t, "running", c.session(running.SessionID).State)
	c.interrupt(running)
	c.leave()
}

// A moved project keeps its whole state, also after a kill. Its queued run starts at the new path.
func TestAMovedProject(t *testing.T) {
	s, c := newEditorSite(parallel(t), oneAtATime)
	done := c.runs("quiet one")
	running := c.launch("stream:1000000@200", "")
	c.awaitState(running.SessionID, "running")
	waiting := c.launch("hello", "")
	c.crash()
	moved := *s
	moved.root = filepath.Join(filepath.Dir(s.root), "moved")
	require.NoError(t, os.Rename(s.root, moved.root))
	c = moved.open()
	assert.Equal(t, "completed", c.session(done.SessionID).State)
	assert.Equal(t, "interrupted", c.session(running.SessionID).State)
	assert.Equal(t, "completed", c.approveAll(waiting.SessionID).Data.State)
	assert.FileExists(t, filepath.Join(moved.root, "demo.txt"))
	c.requireNoIssue()
	c.leave()
	c = moved.start()
	assert.Equal(t, "completed", c.session(waiting.SessionID).State)
	c.leave()
	assert.NoDirExists(t, s.root)
}

// A power cut may undo the user's move, or come before the state has its new name. The worktrees are then
// where they were.
func TestAMoveThatAPowerCutHasUndone(t *testing.T) {
	s := newSite(parallel(t))
	c := s.open()
	done := c.runs("quiet one")
	c.leave()
	state := s.state()
	require.NoError(t, os.MkdirAll(project.WorktreesDir(state), 0o700))
	record := filepath.Join(state, "project.json")
	for _, root := range []string{s.root, filepath.Join(filepath.Dir(s.root), "moved")} {
		text := strings.Replace(readFile(t, record), `"device"`, `"moved_from": `+strconv.Quote(s.root)+",\n  \"device\"", 1)
		text = strings.Replace(text, `"root": `+strconv.Quote(s.root), `"root": `+strconv.Quote(root), 1)
		require.NoError(t, os.WriteFile(record, []byte(text), 0o600))
		c = s.open()
		assert.Equal(t, "completed", c.session(done.SessionID).State)
		c.requireNoIssue()
		c.leave()
		assert.NotContains(t, readFile(t, record), "moved")
	}
}

// A directory recreated at the same path keeps its history. Its earlier trust and rules do not
// apply until the user runs `duet-rpc projects keep`.
func TestADirectoryMadeAnewAllowsNothing(t *testing.T) {
	s := newSite(parallel(t))
	settings := []byte("[agents.own]\ndriver = \"command\"\ncommand = [\"/bin/echo\", \"{prompt}\"]\n")
	make := func() {
		require.NoError(t, os.WriteFile(filepath.Join(s.root, ".duet.toml"), settings, 0o600))
	}
	make()
	s.run("trust", "--yes")
	c := s.open()
	c.launch("quiet", "own")
	first, question := c.asks("hello", "")
	c.call("sendDecision", object{"approval_id": question.Data.ApprovalID, "decision": "approve", "scope": "project"}, nil)
	c.completes(first)
	c.leave()

	require.NoError(t, os.RemoveAll(s.root))
	require.NoError(t, os.Mkdir(s.root, 0o755))
	make()
	c = s.open()
	assert.Equal(t, "completed", c.session(first.SessionID).State, "the session is still there")
	c.requireIssue("`duet-rpc projects keep` lets them count again")
	assert.Equal(t, "not_trusted", c.refused("launchSession", object{"query": "quiet", "agent": "own"}).kind())
	second, _ := c.asks("hello", "")
	out := s.run("projects", "keep")
	assert.Contains(t, out, "counts again")
	c.requireNoIssue()
	c.approveAll(second.SessionID)
	third := c.launch("hello", "")
	e := c.awaitQuestionOrEnd(third)
	assert.Equal(t, "session_status_changed", e.Type)
	c.launch("quiet", "own")
	c.leave()
}

// The database of a killed process keeps its sessions and causes no issue.
func TestADatabaseOutlivesKills(t *testing.T) {
	s := newSite(parallel(t))
	var before []launched
	for i := range 4 {
		c := s.open()
		for _, begun := range before {
			assert.Equal(t, "completed", c.session(begun.SessionID).State)
		}
		c.requireNoIssue()
		begun := c.runs(fmt.Sprint("quiet ", i))
		before = append(before, begun)
		c.crash()
	}
}

// Processes may create the first projects of a state directory concurrently.
func TestManyBeginAtOnce(t *testing.T) {
	s := newSite(parallel(t))
	var begun sync.WaitGroup
	for i := range 8 {
		another := *s
		another.root = filepath.Join(filepath.Dir(s.root), fmt.Sprint("project", i))
		require.NoError(t, os.Mkdir(another.root, 0o755))
		begun.Go(func() {
			_, err := another.command("prompt", "quiet")
			assert.NoError(t, err)
			assert.FileExists(t, another.database())
		})
	}
	begun.Wait()
}

// An environmentSite has agents that write their environment to the file named in the prompt.
type environmentSite struct {
	*site
	gate string // a named pipe; a write to it releases the agent gated
}

func newEnvironmentSite(t *testing.T) environmentSite {
	t.Helper()
	s := environmentSite{site: newDaemonSite(t)}
	s.gate = filepath.Join(s.home, "gate")
	require.NoError(t, syscall.Mkfifo(s.gate, 0o600))
	path := filepath.Join(s.home, "config", "duet", "config.toml")
	text := readFile(t, path)
	require.NoError(t, os.WriteFile(path, []byte(text+`
[agents.plain]
driver = "command"
command = ["sh", "-c", 'env > "$1"', "sh"]
history = "none"
env_from = ["NAMED"]
[agents.gated]
driver = "command"
command = ["sh", "-c", 'env > "$1"; cat "$GATE"', "sh"]
history = "none"
env = { GATE = "`+s.gate+`" }
[agents.tool]
driver = "command"
command = ["duet-test-tool"]
history = "none"
[agents.asked]
command = ["duet-test-tool", "`+filepath.Join(s.home, "asked")+`"]
[[agents.asked.mcp_servers]]
name = "served"
command = "duet-test-tool"
args = ["`+filepath.Join(s.home, "served")+`"]
[[builds]]
name = "built"
command = ["duet-test-tool", "`+filepath.Join(s.home, "built")+`"]
[[gates]]
name = "checked"
command = ["duet-test-tool", "`+filepath.Join(s.home, "checked")+`"]
`), 0o600))
	return s
}

// client starts the program with an environment whose values contain the client's name, and
// subscribes.
func (s environmentSite) client(name string, more ...string) *client {
	s.t.Helper()
	l := s.launch()
	l.env = slices.Concat(l.env, []string{"DUET_RPC_DEBUG=1", "SSH_AUTH_SOCK=/secret-sock-" + name, "NAMED=secret-named-" + name, "UNNAMED=secret-unnamed-" + name}, more)
	c := newClient(l.start(s.t))
	c.subscribe()
	return c
}

// file returns the path of a new file for the environment of an agent.
func (s environmentSite) file(name string) string { return filepath.Join(s.home, name) }

// written returns the environment in a file that an agent wrote.
func (s environmentSite) written(name string) map[string]string {
	s.t.Helper()
	text := readFile(s.t, s.file(name))
	env := make(map[string]string)
	for line := range strings.SplitSeq(text, "\n") {
		if variable, value, ok := strings.Cut(line, "="); ok {
			env[variable] = value
		}
	}
	return env
}

func (s environmentSite) requireOf(client, name string) {
	s.t.Helper()
	env := s.written(name)
	require.Equal(s.t, "/secret-sock-"+client, env["SSH_AUTH_SOCK"], name)
	require.NotContains(s.t, env, "UNNAMED")
}

// requireNoValues requires that Duet stores and logs no value of the clients' environments.
func (s environmentSite) requireNoValues(clients ...*client) {
	s.t.Helper()
	for _, c := range clients {
		require.NotContains(s.t, c.log.String(), "secret-")
	}
	log := readFile(s.t, filepath.Join(s.state(), "daemon.log"))
	require.Contains(s.t, log, "client.environment", "the log has the messages")
	require.Contains(s.t, log, "execute_prompt")
	require.NoError(s.t, filepath.WalkDir(s.state(), func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		content, err := os.ReadFile(path)
		assert.NotContains(s.t, string(content), "secret-", path)
		return err
	}))
}

// An agent gets the environment of the client that launched it, not of the client that started the
// daemon.
func TestAnAgentHasTheEnvironmentOfItsClient(t *testing.T) {
	s := newEnvironmentSite(parallel(t))
	first := s.client("first", "DISPLAY=:1")
	tools := filepath.Join(s.home, "tools")
	require.NoError(t, os.Mkdir(tools, 0o700))
	testkit.Program(t, filepath.Join(tools, "duet-test-tool"), "#!/bin/sh\nenv > \"$1\"\n")
	second := s.client("second", "PATH="+tools+":"+os.Getenv("PATH"))
	hub := s.requireDaemon(first, second)

	first.completes(first.launch(s.file("of-first"), "plain"))
	s.requireOf("first", "of-first")
	assert.Equal(t, ":1", s.written("of-first")["DISPLAY"])
	second.completes(second.launch(s.file("of-second"), "plain"))
	s.requireOf("second", "of-second")
	env := s.written("of-second")
	assert.NotContains(t, env, "DISPLAY")
	assert.Equal(t, "secret-named-second", env["NAMED"], "env_from")
	assert.Equal(t, s.home, env["HOME"])
	assert.Equal(t, filepath.Join(s.home, "state"), env["XDG_STATE_HOME"], "duet-rpc finds the same sessions there")
	second.completes(second.launch(s.file("of-tool"), "tool"))
	s.requireOf("second", "of-tool")

	foreign := s.lines()
	l := foreign.begins("launchSession", object{"query": s.file("of-foreign"), "agent": "plain"})
	first.completes(l)
	s.requireOf("first", "of-foreign")
	assert.Equal(t, "secret-named-first", s.written("of-foreign")["NAMED"])

	for _, c := range []struct {
		name   string
		client *client
	}{{"first", first}, {"second", second}} { // a client's terminal gets that client's environment too
		c.client.spawn(object{"program": "sh", "args": []string{"-c", `env > "$0".part; mv "$0".part "$0"`, s.file("terminal-of-" + c.name)}})
		require.Eventually(t, func() bool { _, err := os.Stat(s.file("terminal-of-" + c.name)); return err == nil }, watchdog/3, pollEvery)
		s.requireOf(c.name, "terminal-of-"+c.name)
		env := s.written("terminal-of-" + c.name)
		assert.NotContains(t, env, "NAMED")
		assert.Equal(t, "xterm-256color", env["TERM"])
		assert.Equal(t, filepath.Join(s.home, "state"), env["XDG_STATE_HOME"], "duet-rpc finds the same sessions there")
	}

	works := first.launch(s.file("works"), "gated")
	first.awaitState(works.SessionID, "running")
	queued := second.next(works, s.file("queued"))
	second.leave()
	require.NoError(t, os.WriteFile(s.gate, []byte("go on"), 0o600))
	first.completes(works)
	require.NoError(t, os.WriteFile(s.gate, []byte("go on"), 0o600))
	first.completes(queued)
	s.requireOf("first", "works")
	s.requireOf("second", "queued")

	s.env = append(s.env, "SSH_AUTH_SOCK=/secret-sock-shell")
	s.run("prompt", "--agent", "plain", s.file("of-shell"))
	s.requireOf("shell", "of-shell")
	require.Equal(t, hub, s.requireDaemon(first))
	first.leave()
	s.requireNoValues(first, second)
	s.run("daemon", "stop")
	s.requireNoValues()
}

// Builds, gates, agent checks and MCP servers get the environment of the client that starts them.
func TestWhatAClientStartsHasItsEnvironment(t *testing.T) {
	s := newEnvironmentSite(parallel(t))
	first := s.client("first", "CC=of-first")
	tools := filepath.Join(s.home, "tools")
	require.NoError(t, os.Mkdir(tools, 0o700))
	testkit.Program(t, filepath.Join(tools, "duet-test-tool"), "#!/bin/sh\nenv > \"$1\"\n")
	second := s.client("second", "CC=of-second", "PATH="+tools+":"+os.Getenv("PATH"))
	s.requireDaemon(first, second)

	require.Error(t, first.try("build", object{"name": "built"}, nil), "only the second client's PATH has the program")
	second.call("build", object{"name": "built"}, nil)
	second.call("gate.check", object{"gate": "checked"}, nil)
	for _, name := range []string{"built", "checked"} {
		env := s.written(name)
		assert.Equal(t, "of-second", env["CC"], name)
		assert.NotContains(t, env, "SSH_AUTH_SOCK", name)
		assert.Equal(t, filepath.Join(s.home, "state"), env["XDG_STATE_HOME"], "duet-rpc finds the same sessions there")
	}

	require.NoError(t, os.Remove(s.file("checked")))
	second.begins("launchSession", object{"query": s.file("gated"), "agent": "plain", "gates": []string{"checked"}})
	second.await("the gate passes", gatesEnded("passed"))
	assert.Equal(t, "of-second", s.written("checked")["CC"], "the gate has the environment of the launching client")

	require.Error(t, second.try("agent.check", object{"agent": "asked"}, nil), "the agent answers nothing")
	s.requireOf("second", "asked")
	_ = second.try("mcp.tools", object{"agent": "asked", "server": "served"}, nil) // the server answers nothing either
	s.requireOf("second", "served")

	leave(first, second)
	s.requireNoValues(first, second)
	s.run("daemon", "stop")
}

// A run that resumes after a crash gets the environment of the resuming client.
func TestAResumedAgentHasTheEnvironmentOfTheClientThatResumesIt(t *testing.T) {
	s := newEnvironmentSite(parallel(t))
	first := s.client("first")
	second := s.client("second")
	hub := s.requireDaemon(first, second)
	works := first.launch(s.file("works"), "gated")
	first.awaitState(works.SessionID, "running")
	require.NoError(t, syscall.Kill(hub, syscall.SIGKILL))
	second.await("the run is interrupted", func(e event) bool { return e.Data.SessionID == works.SessionID && e.Data.State == "interrupted" })
	resumed := second.next(works, s.file("resumed"))
	require.NoError(t, os.WriteFile(s.gate, []byte("go on"), 0o600))
	second.completes(resumed)
	s.requireOf("second", "resumed")
	leave(first, second)
	s.requireNoValues(first, second)
	s.run("daemon", "stop")
}
