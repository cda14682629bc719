//go:build unix

package wire

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/creack/pty"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/e2e"
	"github.com/duet-rpc/duet-rpc/internal/testkit"
)

var greeting = regexp.MustCompile(`— (term_[0-9a-zA-Z_-]+).*; C-\] detaches`)

// terminalOf returns the id of the window's terminal.
func terminalOf(w *e2e.Window) string {
	w.T.Helper()
	w.Shows("C-] detaches")
	return greeting.FindStringSubmatch(w.Printed.String())[1]
}

type listed struct {
	ID       string `json:"terminal_id"`
	PID      int    `json:"pty_pid"`
	Program  string `json:"program"`
	Args     []string
	CWD      string
	Cols     int
	Rows     int
	Tmux     string `json:"tmux_session"`
	Turn     string `json:"turn_uuid"`
	ReadOnly bool   `json:"read_only"`
	Attached int
	Taken    bool
}

// listTerminals lists the terminals as `attach` does.
func listTerminals(s *e2e.Site) []listed {
	s.T.Helper()
	out, err := s.Command("attach", "--json")
	require.NoError(s.T, err)
	var r struct{ Terminals []listed }
	require.NoError(s.T, json.Unmarshal([]byte(out), &r), out)
	return r.Terminals
}

// completions returns the shell completions of a command line.
func completions(s *e2e.Site, args ...string) string {
	s.T.Helper()
	l := s.Launch()
	cmd := exec.Command(e2e.Program, append(append([]string{"__complete"}, l.Args...), args...)...)
	cmd.Dir = s.Root
	cmd.Env = append(append(e2e.CleanEnvironment(), l.Env...), "DUET_COMPLETION_TIMEOUT=1m")
	out, err := cmd.Output()
	require.NoError(s.T, err)
	return string(out)
}

// awaitAttached waits until n clients are attached to the only terminal.
func awaitAttached(s *e2e.Site, n int) {
	s.T.Helper()
	var list []listed
	require.Eventually(s.T, func() bool {
		list = listTerminals(s)
		return len(list) == 1 && list[0].Attached == n
	}, e2e.Watchdog/3, e2e.PollEvery, "the number of attached clients differs")
}

func TestAttach(t *testing.T) {
	s := e2e.NewSite(e2e.Parallel(t))
	s.Daemon()
	out := s.Run("attach")
	assert.Empty(t, out)

	first := s.Window(90, 20, "attach", "--new", "--", "sh", "-c", `PS1='$ '; export PS1; exec sh -i`)
	id := terminalOf(first)
	first.Types("stty size; echo o-n-e | tr -d -\r")
	first.Shows("20 90\r\n", "one\r\n")
	list := listTerminals(s)
	require.Len(t, list, 1)
	assert.Equal(t, listed{
		ID: id, PID: list[0].PID, Program: "sh", Args: []string{"-c", `PS1='$ '; export PS1; exec sh -i`}, CWD: s.Root,
		Cols: 90, Rows: 20, Attached: 1,
	}, list[0])
	assert.NoError(t, syscall.Kill(list[0].PID, 0))

	// The terminal takes the size of the window.
	require.NoError(t, pty.Setsize(first.Keys, &pty.Winsize{Cols: 70, Rows: 30}))
	require.Eventually(t, func() bool { return listTerminals(s)[0].Cols == 70 }, e2e.Watchdog/3, e2e.PollEvery)
	first.Types("stty size\r")
	first.Shows("30 70\r\n")

	// The program keeps running after a detach.
	first.Types("printf '\\033[?1049h\\033[?25l'; echo t-w-o | tr -d -\r")
	first.Shows("two\r\n")
	first.Types("\x1d")
	assert.Zero(t, first.Leaves())
	first.Shows("detached; the program is still running; come back with: duet-rpc attach " + id)
	assert.Contains(t, first.Printed.String(), "\x1b[?25h\x1b[?1049l\x1b[m", "the detach resets the window's modes")
	awaitAttached(s, 0)

	// Two clients attach at once and see the earlier output.
	second, third := s.Window(80, 24, "attach", id), s.Window(81, 25, "attach", id)
	for _, w := range []*e2e.Window{second, third} {
		w.Shows("one\r\n", "two\r\n")
		assert.Equal(t, id, terminalOf(w))
	}
	awaitAttached(s, 2)
	out = s.Run("attach")
	assert.Regexp(t, `(?m)^`+id+` +\d+×\d+ +\d+s +sh -c .*2 attached$`, out)
	assert.Contains(t, completions(s, "attach", ""), id+"\tsh -c")
	second.Types("echo t-h-r-e-e | tr -d -\r")
	second.Shows("three\r\n")
	third.Shows("three\r\n")
	third.Types("echo f-o-u-r | tr -d -\r")
	second.Shows("four\r\n")
	third.Shows("four\r\n")

	// The terminal loses a killed client. The other client ends with the program's exit status.
	require.NoError(t, third.Cmd.Process.Kill())
	awaitAttached(s, 1)
	second.Types("exit 7\r")
	assert.Equal(t, 7, second.Leaves())
	assert.Empty(t, listTerminals(s))
	late := s.Window(80, 24, "attach", id)
	assert.Equal(t, 1, late.Leaves())
	assert.Contains(t, late.Printed.String(), fmt.Sprintf("no terminal has the id %q", id))

	// The exit status reports a signal as shells do.
	last := s.Window(80, 24, "attach", "--new", "--", "sh", "-c", `kill -TERM $$`)
	assert.Equal(t, 128+15, last.Leaves())
}

// A new terminal receives the variables that describe its starter's terminal and user, and no
// others.
func TestAttachEnvironment(t *testing.T) {
	s := e2e.NewSite(e2e.Parallel(t))
	s.Daemon()
	w := s.WindowIn([]string{
		"TERM=eterm-color", "TERMINFO=/some/where", "INSIDE_EMACS=28.2,term:0.96", "COLUMNS=1", "LINES=1",
		"USER=somebody", "EDITOR=emacsclient", "SSH_AUTH_SOCK=/some/socket", "LC_TIME=C", "PAGER=", "A_SECRET=it is",
	}, 100, 20, "attach", "--new", "--", "sh", "-c", "env | sort; echo done; read x")
	w.Shows("done\r\n")
	for _, variable := range []string{
		"TERM=eterm-color", "TERMINFO=/some/where", "INSIDE_EMACS=28.2,term:0.96",
		"USER=somebody", "EDITOR=emacsclient", "SSH_AUTH_SOCK=/some/socket", "LC_TIME=C",
	} {
		assert.Contains(t, w.Printed.String(), "\n"+variable+"\r\n")
	}
	assert.NotRegexp(t, `A_SECRET|COLUMNS|LINES|PAGER`, w.Printed.String())
	w.Types("\r")
	assert.Zero(t, w.Leaves())

	// A starter without a terminal passes no variables about one.
	cmd := s.ShellCommand("attach", "--new", "--", "sh", "-c", "env")
	cmd.Env = append(cmd.Env, "TERM=dumb", "TERMINFO=/some/where", "USER=somebody")
	out, err := cmd.Output()
	require.NoError(t, err)
	assert.Contains(t, string(out), "USER=somebody\r\n")
	assert.NotRegexp(t, `TERM=dumb|TERMINFO`, string(out))
}

// A client that attaches late sees the last lines of a long output, and the end of the terminal.
func TestAttachToMuchOutput(t *testing.T) {
	s := e2e.NewSite(e2e.Parallel(t))
	s.Daemon()
	c := s.Lines()
	spawned := c.Spawn(object{"program": "sh", "args": []string{"-c", `i=0; while [ $i -lt 20000 ]; do i=$((i+1)); echo "line $i"; done; printf '\033[c'; read a; echo "got $a"; exit 3`}})
	c.Until("the last line", func() bool {
		return strings.HasSuffix(e2e.PrintedIn(c.Events[max(0, len(c.Events)-5):]), "line 20000\r\n\x1b[c")
	})
	w := s.Window(80, 24, "attach", spawned.ID)
	w.Shows("line 20000\r\n")
	text := w.Printed.String()
	assert.NotContains(t, text, "line 1\r")
	assert.NotContains(t, text, "\x1b[c", "the replay has no terminal queries")
	_, shown, _ := strings.Cut(text, "detaches\r\n")
	assert.Regexp(t, `^line \d+\r\nline `, shown, "the replay begins with a whole line")
	assert.Less(t, len(shown), 64<<10+1)
	assert.Greater(t, len(shown), 60<<10)
	w.Types("it\r")
	assert.Equal(t, 3, w.Leaves())
	w.Shows("got it")
}

// Clients can only watch an agent's terminal. In version 2 of the protocol, the agent runs the
// command itself.
func TestAttachToAnAgentsTerminal(t *testing.T) {
	t.Parallel()
	for _, version := range []string{"1", "2"} {
		t.Run("version "+version, func(t *testing.T) {
			s := e2e.NewSite(e2e.Parallel(t))
			bin := t.TempDir() // the agent runs ls
			testkit.Program(t, filepath.Join(bin, "ls"), "#!/bin/sh\necho one; echo two\nuntil [ -e go ]; do sleep 0.02; done\necho three\nexit 4\n")
			agent := e2e.FastProgram(t)
			s.Agents(fmt.Sprintf("[agents.watched]\ndriver = \"acp\"\ncommand = [%q, \"demo-agent\", \"--protocol\", %q]\nenv = { PATH = %q, DUET_DEMO_DELAY = \"0\" }\n", agent, version, bin+":/usr/bin:/bin"))
			s.Daemon()
			c := s.Lines()
			l := c.Launch("terminal", "watched")
			require.Eventually(t, func() bool { return len(listTerminals(s)) == 1 }, e2e.Watchdog/3, e2e.PollEvery, "the terminal is not listed")
			found := listTerminals(s)[0]
			assert.Equal(t, listed{
				ID: found.ID, PID: found.PID, Program: "ls", Args: []string{"-la"}, CWD: s.Root, Turn: l.SessionID, ReadOnly: true,
			}, found)
			assert.Equal(t, version == "1", found.PID != 0)
			assert.NoError(t, syscall.Kill(found.PID, 0))
			out := s.Run("attach")
			assert.Regexp(t, found.ID+` +- +\d+s +ls -la +the agent of 1\.1\n`, out)

			w := s.Window(80, 24, "attach", found.ID)
			w.Shows("one\r\ntwo\r\n")
			assert.Contains(t, w.Printed.String(), "an agent's terminal: it takes no input")
			w.Types("x\x03")
			assert.Zero(t, w.Leaves(), "C-c detaches, too")
			for method, params := range map[string]object{
				"terminal.write":  {"terminal_id": found.ID, "data": "x"},
				"terminal.resize": {"terminal_id": found.ID, "cols": 10, "rows": 10},
				"terminal.close":  {"terminal_id": found.ID},
				"terminal.attach": {"terminal_id": found.ID, "descriptor": true},
			} {
				assert.Equal(t, "terminal_read_only", e2e.KindOf(t, c.Try(method, params, nil)), method)
			}
			w = s.Window(80, 24, "attach", found.ID)
			w.Shows("two\r\n")
			require.NoError(t, os.WriteFile(filepath.Join(s.Root, "go"), nil, 0o600))
			w.Shows("three\r\n")
			assert.Equal(t, 4, w.Leaves())
			require.Eventually(t, func() bool { return len(listTerminals(s)) == 0 }, e2e.Watchdog/3, e2e.PollEvery)
		})
	}
}

// A client that attaches and subscribes to all events receives the end of a terminal once. A
// subscription that names terminal.exited adds a second event. The spawner has gone.
func TestTheEndOfATerminalIsToldOnce(t *testing.T) {
	s := e2e.NewSite(e2e.Parallel(t))
	s.Daemon()
	both, named, gone := s.Lines(), s.Lines(), s.Lines()
	both.Call("event.subscribe", object{}, nil)
	both.Call("Subscribe", object{"event_types": []string{"session_status_changed"}}, nil) // for turns
	named.Call("event.subscribe", object{"kinds": []string{"terminal.exited"}}, nil)
	r := gone.Spawn(object{"program": "sh", "args": []string{"-c", "read a; exit 5"}})
	require.NoError(t, gone.Conn.Close())
	awaitAttached(s, 0)
	for _, c := range []*e2e.LineClient{both, named} {
		c.Call("terminal.attach", object{"terminal_id": r.ID}, nil)
	}
	both.Call("terminal.write", object{"terminal_id": r.ID, "data": "\r"}, nil)
	exits := func(c *e2e.LineClient) (n int) {
		for _, e := range c.Events {
			if e.Type == "terminal.exited" && bytes.Contains(e.Raw, []byte(r.ID)) {
				n++
			}
		}
		return n
	}
	named.Until("both terminal.exited events", func() bool { return exits(named) == 2 })
	both.Until("the end", func() bool { return exits(both) > 0 })
	// A second event about the end would precede the events of a later turn.
	both.Runs("quiet")
	both.Until("one terminal.exited event", func() bool { return exits(both) == 1 })
}
