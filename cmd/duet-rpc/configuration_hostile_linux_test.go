package main_test

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

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
	binary, err := fastProgram()
	require.NoError(t, err)
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
				l := s.launch()
				l.args = append(append([]string{}, args...), l.args...)
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
	t.Parallel()
	s := newSite(t)
	s.agents("[agents.plain]\ndriver = \"command\"\ncommand = [\"touch\", \"ran\"]\n")
	ran := filepath.Join(s.root, "ran")
	written("default_agent = \"plain\"\n[limits]\nmax_runs = 100\n[agents.scripted]\ncommand = [\"touch\", \"ran\"]\n")(t, filepath.Join(s.root, ".duet.toml"))
	out, err := s.command("trust", "--show")
	require.NoError(t, err)
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
		assert.Equal(t, "completed", c.awaitEnd(c.launch("quiet", "").SessionID).Data.State)
		assert.NoFileExists(t, ran)
	}
	for _, restricted := range []bool{false, true} {
		c := s.start()
		requireScripted(c, restricted)
		c.leave()
	}
	_, err = s.command("prompt", "quiet")
	require.NoError(t, err)
	require.NoFileExists(t, ran)

	_, err = s.command("trust", "--yes")
	require.NoError(t, err)
	c := s.start()
	c.call("initialize", object{"workspaceTrusted": false}, nil)
	var taken struct{ Agent string }
	c.call("launchSession", object{"query": "quiet"}, &taken)
	assert.Equal(t, "scripted", taken.Agent, "restricted")
	c.leave()
	require.NoFileExists(t, ran)
	_, err = s.command("prompt", "quiet")
	require.NoError(t, err)
	require.FileExists(t, ran, "trusted, it is heeded")
}
