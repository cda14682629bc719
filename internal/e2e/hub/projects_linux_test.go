package hub

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

	"github.com/duet-rpc/duet-rpc/internal/e2e"
	"github.com/duet-rpc/duet-rpc/internal/project"
	"github.com/duet-rpc/duet-rpc/internal/testkit"
)

// oneAtATime limits a hub to one turn at a time.
const oneAtATime = "[limits]\nmax_turns = 1\n"

// copyProject copies the project with `cp -a` and returns the copy, which has the same home.
func copyProject(s *e2e.Site, name string) *e2e.Site {
	s.T.Helper()
	copied := *s
	copied.Root = filepath.Join(filepath.Dir(s.Root), name)
	out, err := exec.Command("cp", "-a", s.Root, copied.Root).CombinedOutput() // machine: every Linux has cp
	require.NoError(s.T, err, "%s", out)
	return &copied
}

// A copy of a project with a busy hub starts without history and does not affect the original.
func TestACopyOfAProjectAtWork(t *testing.T) {
	s, c := e2e.NewEditorSite(e2e.Parallel(t))
	running := c.Launch("stream:1000000@200", "")
	c.AwaitState(running.SessionID, "running")
	others := copyProject(s, "other")

	_, err := others.Command("daemon", "stop", "--force")
	require.ErrorContains(t, err, "no daemon runs here")
	editor := others.Open()
	editor.Refused("getSessionState", object{"session_id": running.SessionID})
	editor.RequireNoIssue()
	editor.Runs("quiet")
	assert.NotEqual(t, e2e.HubOf(t, c), e2e.HubOf(t, editor))
	editor.Leave()
	assert.Equal(t, "running", c.Session(running.SessionID).State)
	c.Interrupt(running)
	c.Leave()
}

// A moved project keeps its whole state, also after a kill. Its queued run starts at the new path.
func TestAMovedProject(t *testing.T) {
	s, c := e2e.NewEditorSite(e2e.Parallel(t), oneAtATime)
	done := c.Runs("quiet one")
	running := c.Launch("stream:1000000@200", "")
	c.AwaitState(running.SessionID, "running")
	waiting := c.Launch("hello", "")
	c.Crash()
	moved := *s
	moved.Root = filepath.Join(filepath.Dir(s.Root), "moved")
	require.NoError(t, os.Rename(s.Root, moved.Root))
	c = moved.Open()
	assert.Equal(t, "completed", c.Session(done.SessionID).State)
	assert.Equal(t, "interrupted", c.Session(running.SessionID).State)
	assert.Equal(t, "completed", c.ApproveAll(waiting.SessionID).Data.State)
	assert.FileExists(t, filepath.Join(moved.Root, "demo.txt"))
	c.RequireNoIssue()
	c.Leave()
	c = moved.Start()
	assert.Equal(t, "completed", c.Session(waiting.SessionID).State)
	c.Leave()
	assert.NoDirExists(t, s.Root)
}

// A power cut may undo the user's move, or come before the state has its new name. The worktrees are then
// where they were.
func TestAMoveThatAPowerCutHasUndone(t *testing.T) {
	s := e2e.NewSite(e2e.Parallel(t))
	c := s.Open()
	done := c.Runs("quiet one")
	c.Leave()
	state := s.State()
	require.NoError(t, os.MkdirAll(project.WorktreesDir(state), 0o700))
	record := filepath.Join(state, "project.json")
	for _, root := range []string{s.Root, filepath.Join(filepath.Dir(s.Root), "moved")} {
		text := strings.Replace(e2e.ReadFile(t, record), `"device"`, `"moved_from": `+strconv.Quote(s.Root)+",\n  \"device\"", 1)
		text = strings.Replace(text, `"root": `+strconv.Quote(s.Root), `"root": `+strconv.Quote(root), 1)
		require.NoError(t, os.WriteFile(record, []byte(text), 0o600))
		c = s.Open()
		assert.Equal(t, "completed", c.Session(done.SessionID).State)
		c.RequireNoIssue()
		c.Leave()
		assert.NotContains(t, e2e.ReadFile(t, record), "moved")
	}
}

// A directory recreated at the same path keeps its history. Its earlier trust and rules do not
// apply until the user runs `duet-rpc projects keep`.
func TestADirectoryMadeAnewAllowsNothing(t *testing.T) {
	s := e2e.NewSite(e2e.Parallel(t))
	settings := []byte("[agents.own]\ndriver = \"command\"\ncommand = [\"/bin/echo\", \"{prompt}\"]\n")
	make := func() {
		require.NoError(t, os.WriteFile(filepath.Join(s.Root, ".duet.toml"), settings, 0o600))
	}
	make()
	s.Run("trust", "--yes")
	c := s.Open()
	c.Launch("quiet", "own")
	first, question := c.Asks("hello", "")
	c.Call("sendDecision", object{"approval_id": question.Data.ApprovalID, "decision": "approve", "scope": "project"}, nil)
	c.Completes(first)
	c.Leave()

	require.NoError(t, os.RemoveAll(s.Root))
	require.NoError(t, os.Mkdir(s.Root, 0o755))
	make()
	c = s.Open()
	assert.Equal(t, "completed", c.Session(first.SessionID).State, "the session is still there")
	c.RequireIssue("`duet-rpc projects keep` lets them count again")
	assert.Equal(t, "not_trusted", c.Refused("launchSession", object{"query": "quiet", "agent": "own"}).Kind())
	second, _ := c.Asks("hello", "")
	out := s.Run("projects", "keep")
	assert.Contains(t, out, "counts again")
	c.RequireNoIssue()
	c.ApproveAll(second.SessionID)
	third := c.Launch("hello", "")
	e := c.AwaitQuestionOrEnd(third)
	assert.Equal(t, "session_status_changed", e.Type)
	c.Launch("quiet", "own")
	c.Leave()
}

// The database of a killed process keeps its sessions and causes no issue.
func TestADatabaseOutlivesKills(t *testing.T) {
	s := e2e.NewSite(e2e.Parallel(t))
	var before []e2e.Launched
	for i := range 4 {
		c := s.Open()
		for _, begun := range before {
			assert.Equal(t, "completed", c.Session(begun.SessionID).State)
		}
		c.RequireNoIssue()
		begun := c.Runs(fmt.Sprint("quiet ", i))
		before = append(before, begun)
		c.Crash()
	}
}

// Processes may create the first projects of a state directory concurrently.
func TestManyBeginAtOnce(t *testing.T) {
	s := e2e.NewSite(e2e.Parallel(t))
	var begun sync.WaitGroup
	for i := range 8 {
		another := *s
		another.Root = filepath.Join(filepath.Dir(s.Root), fmt.Sprint("project", i))
		require.NoError(t, os.Mkdir(another.Root, 0o755))
		begun.Go(func() {
			_, err := another.Command("prompt", "quiet")
			assert.NoError(t, err)
			assert.FileExists(t, another.Database())
		})
	}
	begun.Wait()
}

// An environmentSite has agents that write their environment to the file named in the prompt.
type environmentSite struct {
	*e2e.Site
	gate string // a named pipe; a write to it releases the agent gated
}

func newEnvironmentSite(t *testing.T) environmentSite {
	t.Helper()
	s := environmentSite{Site: e2e.NewDaemonSite(t)}
	s.gate = filepath.Join(s.Home, "gate")
	require.NoError(t, syscall.Mkfifo(s.gate, 0o600))
	path := filepath.Join(s.Home, "config", "duet", "config.toml")
	text := e2e.ReadFile(t, path)
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
command = ["duet-test-tool", "`+filepath.Join(s.Home, "asked")+`"]
[[agents.asked.mcp_servers]]
name = "served"
command = "duet-test-tool"
args = ["`+filepath.Join(s.Home, "served")+`"]
[[builds]]
name = "built"
command = ["duet-test-tool", "`+filepath.Join(s.Home, "built")+`"]
[[gates]]
name = "checked"
command = ["duet-test-tool", "`+filepath.Join(s.Home, "checked")+`"]
`), 0o600))
	return s
}

// client starts the program with an environment whose values contain the client's name, and
// subscribes.
func (s environmentSite) client(name string, more ...string) *e2e.Client {
	s.T.Helper()
	l := s.Launch()
	l.Env = slices.Concat(l.Env, []string{"DUET_RPC_DEBUG=1", "SSH_AUTH_SOCK=/secret-sock-" + name, "NAMED=secret-named-" + name, "UNNAMED=secret-unnamed-" + name}, more)
	c := e2e.NewClient(l.Start(s.T))
	c.Subscribe()
	return c
}

// file returns the path of a new file for the environment of an agent.
func (s environmentSite) file(name string) string { return filepath.Join(s.Home, name) }

// written returns the environment in a file that an agent wrote.
func (s environmentSite) written(name string) map[string]string {
	s.T.Helper()
	text := e2e.ReadFile(s.T, s.file(name))
	env := make(map[string]string)
	for line := range strings.SplitSeq(text, "\n") {
		if variable, value, ok := strings.Cut(line, "="); ok {
			env[variable] = value
		}
	}
	return env
}

func (s environmentSite) requireOf(client, name string) {
	s.T.Helper()
	env := s.written(name)
	require.Equal(s.T, "/secret-sock-"+client, env["SSH_AUTH_SOCK"], name)
	require.NotContains(s.T, env, "UNNAMED")
}

// requireNoValues requires that Duet stores and logs no value of the clients' environments.
func (s environmentSite) requireNoValues(clients ...*e2e.Client) {
	s.T.Helper()
	for _, c := range clients {
		require.NotContains(s.T, c.Log.String(), "secret-")
	}
	log := e2e.ReadFile(s.T, filepath.Join(s.State(), "daemon.log"))
	require.Contains(s.T, log, "client.environment", "the log has the messages")
	require.Contains(s.T, log, "execute_prompt")
	require.NoError(s.T, filepath.WalkDir(s.State(), func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		content, err := os.ReadFile(path)
		assert.NotContains(s.T, string(content), "secret-", path)
		return err
	}))
}

// An agent gets the environment of the client that launched it, not of the client that started the
// daemon.
func TestAnAgentHasTheEnvironmentOfItsClient(t *testing.T) {
	s := newEnvironmentSite(e2e.Parallel(t))
	first := s.client("first", "DISPLAY=:1")
	tools := filepath.Join(s.Home, "tools")
	require.NoError(t, os.Mkdir(tools, 0o700))
	testkit.Program(t, filepath.Join(tools, "duet-test-tool"), "#!/bin/sh\nenv > \"$1\"\n")
	second := s.client("second", "PATH="+tools+":"+os.Getenv("PATH"))
	hub := requireDaemon(s.Site, first, second)

	first.Completes(first.Launch(s.file("of-first"), "plain"))
	s.requireOf("first", "of-first")
	assert.Equal(t, ":1", s.written("of-first")["DISPLAY"])
	second.Completes(second.Launch(s.file("of-second"), "plain"))
	s.requireOf("second", "of-second")
	env := s.written("of-second")
	assert.NotContains(t, env, "DISPLAY")
	assert.Equal(t, "secret-named-second", env["NAMED"], "env_from")
	assert.Equal(t, s.Home, env["HOME"])
	assert.Equal(t, filepath.Join(s.Home, "state"), env["XDG_STATE_HOME"], "duet-rpc finds the same sessions there")
	second.Completes(second.Launch(s.file("of-tool"), "tool"))
	s.requireOf("second", "of-tool")

	foreign := s.Lines()
	l := foreign.Begins("launchSession", object{"query": s.file("of-foreign"), "agent": "plain"})
	first.Completes(l)
	s.requireOf("first", "of-foreign")
	assert.Equal(t, "secret-named-first", s.written("of-foreign")["NAMED"])

	for _, c := range []struct {
		name   string
		client *e2e.Client
	}{{"first", first}, {"second", second}} { // a client's terminal gets that client's environment too
		c.client.Spawn(object{"program": "sh", "args": []string{"-c", `env > "$0".part; mv "$0".part "$0"`, s.file("terminal-of-" + c.name)}})
		require.Eventually(t, func() bool { _, err := os.Stat(s.file("terminal-of-" + c.name)); return err == nil }, e2e.Watchdog/3, e2e.PollEvery)
		s.requireOf(c.name, "terminal-of-"+c.name)
		env := s.written("terminal-of-" + c.name)
		assert.NotContains(t, env, "NAMED")
		assert.Equal(t, "xterm-256color", env["TERM"])
		assert.Equal(t, filepath.Join(s.Home, "state"), env["XDG_STATE_HOME"], "duet-rpc finds the same sessions there")
	}

	works := first.Launch(s.file("works"), "gated")
	first.AwaitState(works.SessionID, "running")
	queued := second.Next(works, s.file("queued"))
	second.Leave()
	require.NoError(t, os.WriteFile(s.gate, []byte("go on"), 0o600))
	first.Completes(works)
	require.NoError(t, os.WriteFile(s.gate, []byte("go on"), 0o600))
	first.Completes(queued)
	s.requireOf("first", "works")
	s.requireOf("second", "queued")

	s.Env = append(s.Env, "SSH_AUTH_SOCK=/secret-sock-shell")
	s.Run("prompt", "--agent", "plain", s.file("of-shell"))
	s.requireOf("shell", "of-shell")
	require.Equal(t, hub, requireDaemon(s.Site, first))
	first.Leave()
	s.requireNoValues(first, second)
	s.Run("daemon", "stop")
	s.requireNoValues()
}

// Builds, gates, agent checks and MCP servers get the environment of the client that starts them.
func TestWhatAClientStartsHasItsEnvironment(t *testing.T) {
	s := newEnvironmentSite(e2e.Parallel(t))
	first := s.client("first", "CC=of-first")
	tools := filepath.Join(s.Home, "tools")
	require.NoError(t, os.Mkdir(tools, 0o700))
	testkit.Program(t, filepath.Join(tools, "duet-test-tool"), "#!/bin/sh\nenv > \"$1\"\n")
	second := s.client("second", "CC=of-second", "PATH="+tools+":"+os.Getenv("PATH"))
	requireDaemon(s.Site, first, second)

	require.Error(t, first.Try("build", object{"name": "built"}, nil), "only the second client's PATH has the program")
	second.Call("build", object{"name": "built"}, nil)
	second.Call("gate.check", object{"gate": "checked"}, nil)
	for _, name := range []string{"built", "checked"} {
		env := s.written(name)
		assert.Equal(t, "of-second", env["CC"], name)
		assert.NotContains(t, env, "SSH_AUTH_SOCK", name)
		assert.Equal(t, filepath.Join(s.Home, "state"), env["XDG_STATE_HOME"], "duet-rpc finds the same sessions there")
	}

	require.NoError(t, os.Remove(s.file("checked")))
	second.Begins("launchSession", object{"query": s.file("gated"), "agent": "plain", "gates": []string{"checked"}})
	second.Await("the gate passes", gatesEnded("passed"))
	assert.Equal(t, "of-second", s.written("checked")["CC"], "the gate has the environment of the launching client")

	require.Error(t, second.Try("agent.check", object{"agent": "asked"}, nil), "the agent answers nothing")
	s.requireOf("second", "asked")
	_ = second.Try("mcp.tools", object{"agent": "asked", "server": "served"}, nil) // the server answers nothing either
	s.requireOf("second", "served")

	e2e.Leave(first, second)
	s.requireNoValues(first, second)
	s.Run("daemon", "stop")
}

// A turn that resumes after a crash gets the environment of the resuming client.
func TestAResumedAgentHasTheEnvironmentOfTheClientThatResumesIt(t *testing.T) {
	s := newEnvironmentSite(e2e.Parallel(t))
	first := s.client("first")
	second := s.client("second")
	hub := requireDaemon(s.Site, first, second)
	works := first.Launch(s.file("works"), "gated")
	first.AwaitState(works.SessionID, "running")
	require.NoError(t, syscall.Kill(hub, syscall.SIGKILL))
	second.Await("the turn is interrupted", func(e e2e.Event) bool { return e.Data.SessionID == works.SessionID && e.Data.State == "interrupted" })
	resumed := second.Next(works, s.file("resumed"))
	require.NoError(t, os.WriteFile(s.gate, []byte("go on"), 0o600))
	second.Completes(resumed)
	s.requireOf("second", "resumed")
	e2e.Leave(first, second)
	s.requireNoValues(first, second)
	s.Run("daemon", "stop")
}
