package main_test

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// hostileConfigurations are .duet.toml files that a repository could bring to
// hurt the user who opens it, and what is said of each.
var hostileConfigurations = map[string]struct {
	plant func(t *testing.T, path string)
	says  string
}{
	"a key of 40,000 parts":    {written("[limits]\n" + strings.Repeat("a.", 40_000) + "a = 'hub'\n"), ".duet.toml:2:32: a key has more than 16 parts"},
	"a megabyte of one key":    {written(strings.Repeat("a.", 500_000) + "a = 'hub'\n"), ".duet.toml: it cannot be read: it is longer than 262144 bytes"},
	"40,000 arrays":            {written("hub = " + strings.Repeat("[", 40_000) + strings.Repeat("]", 40_000)), ".duet.toml:1:23: arrays and tables are nested more than 16 deep"},
	"8,000 agents":             {written(manyAgents(8_000)), ".duet.toml:5003:2: there are more than 5000 keys and tables"},
	"a pipe":                   {func(t *testing.T, path string) { require.NoError(t, unix.Mkfifo(path, 0o600)) }, ".duet.toml: it cannot be read: it is no regular file"},
	"a device that never ends": {func(t *testing.T, path string) { require.NoError(t, os.Symlink("/dev/zero", path)) }, ".duet.toml: it cannot be read: it is no regular file"},
}

func manyAgents(n int) string {
	var b strings.Builder
	b.WriteString("# hub\n\n")
	for i := range n {
		fmt.Fprintf(&b, "[agents.a%d]\ncommand=['a']\n", i)
	}
	return b.String()
}

func written(text string) func(*testing.T, string) {
	return func(t *testing.T, path string) { require.NoError(t, os.WriteFile(path, []byte(text), 0o600)) }
}

// Whatever a repository brings as configuration, an editor is served at once and
// its process ends in time, with what is wrong said, and no command takes much
// memory over it.
func TestAHostileConfigurationKeepsNobody(t *testing.T) {
	binary := fastProgram(t)
	for name, c := range hostileConfigurations {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for way, leave := range map[string]func(*process){
				"EOF": (*process).closeStdin, "SIGTERM": func(p *process) { require.NoError(t, p.cmd.Process.Signal(syscall.SIGTERM)) },
			} {
				s := newSite(t)
				s.binary = binary
				c.plant(t, filepath.Join(s.root, ".duet.toml"))
				p := s.launch().start(t)
				memory := watchMemory(p.cmd.Process.Pid)
				p.closeStdin() // before it has read anything
				p.requireGoneWithin(goneAfter+raceSlack, startStopwatch(t))
				assert.Less(t, memory(), int64(hostileMemory), way)

				editor := s.start()
				memory = watchMemory(editor.cmd.Process.Pid)
				editor.requireCore()
				require.ErrorContains(t, editor.try("listSessions", object{}, nil), c.says)
				require.Error(t, editor.try("initialize", object{"workspaceTrusted": true}, nil))
				leave(editor.process)
				editor.requireGoneWithin(goneAfter+raceSlack, startStopwatch(t))
				assert.Less(t, memory(), int64(hostileMemory), way)
			}
			s := newSite(t)
			s.binary = binary
			c.plant(t, filepath.Join(s.root, ".duet.toml"))
			for _, args := range [][]string{{"config"}, {"config", "--check"}, {"trust"}, {"trust", "--yes"}, {"agents"}, {"prompt", "quiet"}, {"doctor"}} {
				l := s.launch(args...)
				p := l.start(t)
				memory := watchMemory(p.cmd.Process.Pid)
				p.closeStdin()
				out, err := io.ReadAll(p.stdout)
				require.NoError(t, err)
				<-p.ended
				require.NotZero(t, p.cmd.ProcessState.ExitCode(), args)
				assert.Contains(t, string(out)+p.log.String(), c.says, args)
				assert.Less(t, memory(), int64(hostileMemory), args)
			}
		})
	}
}

// Until the file is trusted its user's own default answers, and for an editor
// that does not trust the workspace also after that.
func TestAProjectsDefaultAgentWaitsForTrust(t *testing.T) {
	s := newSite(parallel(t), "[agents.plain]\ndriver = \"command\"\ncommand = [\"touch\", \"ran\"]\n")
	ran := filepath.Join(s.root, "ran")
	written("default_agent = \"plain\"\n[limits]\nmax_runs = 100\n[agents.scripted]\ncommand = [\"touch\", \"ran\"]\n")(t, filepath.Join(s.root, ".duet.toml"))
	out := s.run("trust", "--show")
	for _, line := range []string{`default_agent = "plain"`, `limits.max_runs = 100`, `agents.scripted.command = ["touch", "ran"]`} {
		assert.Contains(t, out, line)
	}
	requireScripted := func(c *client, restricted bool) {
		t.Helper()
		if restricted {
			c.call("initialize", object{"workspaceTrusted": false}, nil)
		}
		c.subscribe()
		for method, params := range map[string]object{"launchSession": {"query": "quiet"}, "task.submit": {"prompt": "quiet"}} {
			var taken struct{ Agent string }
			c.call(method, params, &taken)
			assert.Equal(t, "scripted", taken.Agent, method)
		}
		c.runs("quiet")
		assert.NoFileExists(t, ran)
	}
	for _, restricted := range []bool{false, true} {
		c := s.start()
		requireScripted(c, restricted)
		c.leave()
	}
	s.run("prompt", "quiet")
	require.NoFileExists(t, ran)

	s.run("trust", "--yes")
	c := s.start()
	c.call("initialize", object{"workspaceTrusted": false}, nil)
	var taken struct{ Agent string }
	c.call("launchSession", object{"query": "quiet"}, &taken)
	assert.Equal(t, "scripted", taken.Agent, "restricted")
	c.leave()
	require.NoFileExists(t, ran)
	s.run("prompt", "quiet")
	require.FileExists(t, ran, "trusted, it is heeded")
}

// followedWithin is how soon a running hub follows a change by itself.
const followedWithin = 2 * time.Second

// none are the processes there whose command has a text in it.
func (s *site) requireNone(text string) {
	s.t.Helper()
	require.Eventually(s.t, func() bool { return !strings.Contains(strings.Join(s.processes(), "\n"), text) }, watchdog/3, pollEvery, "%s is still there", text)
}

// What stood on a trust that is taken back ends, in an editor's hub as in a
// daemon.
func TestARevocationIsFollowed(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"an editor's hub", "a daemon"} {
		t.Run(kind, func(t *testing.T) {
			s := newSite(parallel(t))
			s.clearDaemons()
			agent := filepath.Join(s.home, "theirs")
			binary := fastProgram(t)
			require.NoError(t, os.Symlink(binary, agent))
			written(fmt.Sprintf("default_agent = \"theirs\"\n[agents.theirs]\ncommand = [%q, \"demo-agent\"]\n[[rules]]\neffect = \"allow\"\ntool = \"*\"\n", agent))(t, filepath.Join(s.root, ".duet.toml"))
			if kind == "a daemon" {
				s.daemon()
			}
			c := s.open()
			_, err := s.command("trust", "--yes") // which counts at once, too
			require.NoError(t, err)
			require.Equal(t, "completed", c.awaitEnd(c.launch("quiet", "theirs").SessionID).Data.State) // and stays, idle
			free := c.launch("permit:1 quiet", "scripted")
			require.Equal(t, "completed", c.awaitEnd(free.SessionID).Data.State, "the file allows it")
			var works struct {
				Agent     string
				SessionID string `json:"session_id"`
			}
			c.call("launchSession", object{"query": "quiet stream:100000@50"}, &works)
			require.Equal(t, "theirs", works.Agent)
			c.awaitState(works.SessionID, "running")
			mine := c.launch("quiet stream:100000@50", "scripted")
			c.awaitState(mine.SessionID, "running")

			s.run("trust", "--revoke")
			watch := startStopwatch(t)
			end := c.awaitEnd(works.SessionID)
			watch.assertWithin(t, followedWithin)
			assert.Equal(t, []string{"interrupted", "TRUST_REVOKED"}, []string{end.Data.State, end.Data.ErrorCode})
			assert.Contains(t, end.Data.Error, "duet-rpc trust")
			s.requireNone(agent)
			assert.Equal(t, "running", c.session(mine.SessionID).State, "who did not stand on it goes on")

			asks, question := c.asks("permit:1 quiet", "scripted")
			c.approve(question.Data.ApprovalID)
			c.completes(asks)
			assert.Equal(t, "not_trusted", c.refused("continueSession", object{"session_id": works.SessionID, "query": "go on"}).kind())
			assert.Equal(t, "not_trusted", c.refused("launchSession", object{"query": "quiet", "agent": "theirs"}).kind())
			c.call("launchSession", object{"query": "quiet"}, &works)
			assert.Equal(t, "scripted", works.Agent, "nor does the file choose any more")
			c.interrupt(mine)

			// Trusted again, it goes on where it was.
			s.run("trust", "--yes")
			first := c.launch("quiet", "")
			c.completes(first)
			c.leave()
			if kind == "a daemon" {
				s.run("daemon", "stop", "--force")
			}
		})
	}
}

// Rules and keys count as they are now: for the next question and the next agent
// at once, for what is open a moment later.
func TestRulesAndKeysAreThoseOfNow(t *testing.T) {
	s := newSite(parallel(t))
	const shows = "[agents.shows]\ndriver = \"command\"\ncommand = [\"sh\", \"-c\", \"test \\\"$KEY\\\" = two && echo it is two || echo it is another\"]\nkeys = { KEY = \"service\" }\n"
	key := func(value string) string {
		return fmt.Sprintf("[keys.service]\ncommand = [\"echo\", %q]\n", value)
	}
	s.agents(shows + key("one"))
	c := s.open()
	reported := func() string {
		t.Helper()
		said := s.run("prompt", "--agent", "shows", "tell")
		return strings.TrimSpace(said)
	}
	require.Equal(t, "it is another", reported())
	open, question := c.asks("permit:1 quiet", "")

	s.agents(shows + key("two") + "[[rules]]\neffect = \"deny\"\ntool = \"*\"\n")
	watch := startStopwatch(t)
	resolved := c.awaitAnswer(question.Data.ApprovalID)
	watch.assertWithin(t, followedWithin)
	assert.Equal(t, "denied", resolved.Data.Decision)
	assert.Contains(t, string(resolved.Raw), "rule=user")
	c.awaitEnd(open.SessionID)
	denied := c.launch("permit:1 quiet", "")
	c.awaitEnd(denied.SessionID)
	assert.Empty(t, c.pending(), "no question is asked")
	assert.Equal(t, "it is two", reported())

	// A rule that has gone is asked about again, also one that was made here.
	s.agents(shows + key("two"))
	asks := c.launch("permit:1 quiet", "")
	question = c.awaitQuestion(asks.SessionID)
	c.call("sendDecision", object{"approval_id": question.Data.ApprovalID, "decision": "approve", "scope": "project"}, nil)
	c.completes(asks)
	passes := c.launch("permit:1 quiet", "")
	require.Equal(t, "completed", c.awaitEnd(passes.SessionID).Data.State, "it was decided for good")
	var made struct {
		Rules []struct {
			ID int64 `json:"rule_id"`
		}
	}
	c.call("getRules", object{}, &made)
	require.Len(t, made.Rules, 1)
	s.run("approvals", "forget", fmt.Sprint(made.Rules[0].ID))
	again, _ := c.asks("permit:1 quiet", "")
	c.interrupt(again)

	// While a file cannot be read nothing starts, and the hub stays.
	s.agents("wrong = 1\n")
	require.ErrorContains(t, c.try("launchSession", object{"query": "quiet"}, nil), "unknown key")
	c.requireCore()
	s.agents("")
	c.runs("quiet")
	c.leave()
}
