//go:build unix

package main_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"
	"github.com/duet-rpc/duet-rpc/internal/testkit"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A window is duet-rpc in a terminal of its own, in front of a user.
type window struct {
	t       testing.TB
	cmd     *exec.Cmd
	keys    *os.File
	printed *testkit.Text
	ended   chan struct{}
}

// window runs duet-rpc in a new terminal.
func (s *site) window(cols, rows uint16, args ...string) *window {
	s.t.Helper()
	return s.windowIn(nil, cols, rows, args...)
}

// windowIn runs duet-rpc in a new terminal, with more in its environment.
func (s *site) windowIn(environment []string, cols, rows uint16, args ...string) *window {
	s.t.Helper()
	cmd := s.shellCommand(args...)
	cmd.Env = append(append(cmd.Env, "TERM=xterm"), environment...)
	keys, err := pty.StartWithSize(cmd, &pty.Winsize{Cols: cols, Rows: rows})
	require.NoError(s.t, err)
	w := &window{t: s.t, cmd: cmd, keys: keys, printed: &testkit.Text{}, ended: make(chan struct{})}
	go func() {
		defer close(w.ended)
		_, _ = io.Copy(w.printed, keys) // until EIO, when the last process has closed its side
		_ = cmd.Wait()
	}()
	s.t.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-w.ended
		keys.Close()
	})
	return w
}

func (w *window) types(text string) {
	w.t.Helper()
	_, err := io.WriteString(w.keys, text)
	require.NoError(w.t, err)
}

// shows waits until the window has printed the texts.
func (w *window) shows(texts ...string) {
	w.t.Helper()
	for _, text := range texts {
		w.printed.AwaitPart(w.t, text)
	}
}

// leaves waits for the end of the program and returns the exit status.
func (w *window) leaves() int {
	w.t.Helper()
	select {
	case <-w.ended:
	case <-time.After(watchdog / 3):
		require.Fail(w.t, "the program does not end", w.printed.String())
	}
	return w.cmd.ProcessState.ExitCode()
}

var greeting = regexp.MustCompile(`— (term_[0-9a-zA-Z_-]+).*; C-\] detaches`)

// terminal returns the id of the window's terminal.
func (w *window) terminal() string {
	w.t.Helper()
	w.shows("C-] detaches")
	return greeting.FindStringSubmatch(w.printed.String())[1]
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

// terminals lists the terminals as `attach` does.
func (s *site) terminals() []listed {
	s.t.Helper()
	out, err := s.command("attach", "--json")
	require.NoError(s.t, err)
	var r struct{ Terminals []listed }
	require.NoError(s.t, json.Unmarshal([]byte(out), &r), out)
	return r.Terminals
}

// completed returns the shell completions of a command line.
func (s *site) completed(args ...string) string {
	s.t.Helper()
	l := s.launch()
	cmd := exec.Command(program, append(append([]string{"__complete"}, l.args...), args...)...)
	cmd.Dir = s.root
	cmd.Env = append(append(cleanEnvironment(), l.env...), "DUET_COMPLETION_TIMEOUT=1m")
	out, err := cmd.Output()
	require.NoError(s.t, err)
	return string(out)
}

// attached waits until n clients are attached to the only terminal.
func (s *site) attached(n int) {
	s.t.Helper()
	var list []listed
	require.Eventually(s.t, func() bool {
		list = s.terminals()
		return len(list) == 1 && list[0].Attached == n
	}, watchdog/3, pollEvery, "the number of attached clients differs")
}

func TestAttach(t *testing.T) {
	s := newSite(parallel(t))
	s.daemon()
	out := s.run("attach")
	assert.Empty(t, out)

	first := s.window(90, 20, "attach", "--new", "--", "sh", "-c", `PS1='$ '; export PS1; exec sh -i`)
	id := first.terminal()
	first.types("stty size; echo o-n-e | tr -d -\r")
	first.shows("20 90\r\n", "one\r\n")
	list := s.terminals()
	require.Len(t, list, 1)
	assert.Equal(t, listed{
		ID: id, PID: list[0].PID, Program: "sh", Args: []string{"-c", `PS1='$ '; export PS1; exec sh -i`}, CWD: s.root,
		Cols: 90, Rows: 20, Attached: 1,
	}, list[0])
	assert.NoError(t, syscall.Kill(list[0].PID, 0))

	// The terminal takes the size of the window.
	require.NoError(t, pty.Setsize(first.keys, &pty.Winsize{Cols: 70, Rows: 30}))
	require.Eventually(t, func() bool { return s.terminals()[0].Cols == 70 }, watchdog/3, pollEvery)
	first.types("stty size\r")
	first.shows("30 70\r\n")

	// The program keeps running after a detach.
	first.types("printf '\\033[?1049h\\033[?25l'; echo t-w-o | tr -d -\r")
	first.shows("two\r\n")
	first.types("\x1d")
	assert.Zero(t, first.leaves())
	first.shows("detached; the program is still running; come back with: duet-rpc attach " + id)
	assert.Contains(t, first.printed.String(), "\x1b[?25h\x1b[?1049l\x1b[m", "the detach resets the window's modes")
	s.attached(0)

	// Two clients attach at once and see the earlier output.
	second, third := s.window(80, 24, "attach", id), s.window(81, 25, "attach", id)
	for _, w := range []*window{second, third} {
		w.shows("one\r\n", "two\r\n")
		assert.Equal(t, id, w.terminal())
	}
	s.attached(2)
	out = s.run("attach")
	assert.Regexp(t, `(?m)^`+id+` +\d+×\d+ +\d+s +sh -c .*2 attached$`, out)
	assert.Contains(t, s.completed("attach", ""), id+"\tsh -c")
	second.types("echo t-h-r-e-e | tr -d -\r")
	second.shows("three\r\n")
	third.shows("three\r\n")
	third.types("echo f-o-u-r | tr -d -\r")
	second.shows("four\r\n")
	third.shows("four\r\n")

	// The terminal loses a killed client. The other client ends with the program's exit status.
	require.NoError(t, third.cmd.Process.Kill())
	s.attached(1)
	second.types("exit 7\r")
	assert.Equal(t, 7, second.leaves())
	assert.Empty(t, s.terminals())
	late := s.window(80, 24, "attach", id)
	assert.Equal(t, 1, late.leaves())
	assert.Contains(t, late.printed.String(), fmt.Sprintf("no terminal has the id %q", id))

	// The exit status reports a signal as shells do.
	last := s.window(80, 24, "attach", "--new", "--", "sh", "-c", `kill -TERM $$`)
	assert.Equal(t, 128+15, last.leaves())
}

// A new terminal receives the variables that describe its starter's terminal and user, and no
// others.
func TestAttachEnvironment(t *testing.T) {
	s := newSite(parallel(t))
	s.daemon()
	w := s.windowIn([]string{
		"TERM=eterm-color", "TERMINFO=/some/where", "INSIDE_EMACS=28.2,term:0.96", "COLUMNS=1", "LINES=1",
		"USER=somebody", "EDITOR=emacsclient", "SSH_AUTH_SOCK=/some/socket", "LC_TIME=C", "PAGER=", "A_SECRET=it is",
	}, 100, 20, "attach", "--new", "--", "sh", "-c", "env | sort; echo done; read x")
	w.shows("done\r\n")
	for _, variable := range []string{
		"TERM=eterm-color", "TERMINFO=/some/where", "INSIDE_EMACS=28.2,term:0.96",
		"USER=somebody", "EDITOR=emacsclient", "SSH_AUTH_SOCK=/some/socket", "LC_TIME=C",
	} {
		assert.Contains(t, w.printed.String(), "\n"+variable+"\r\n")
	}
	assert.NotRegexp(t, `A_SECRET|COLUMNS|LINES|PAGER`, w.printed.String())
	w.types("\r")
	assert.Zero(t, w.leaves())

	// A starter without a terminal passes no variables about one.
	cmd := s.shellCommand("attach", "--new", "--", "sh", "-c", "env")
	cmd.Env = append(cmd.Env, "TERM=dumb", "TERMINFO=/some/where", "USER=somebody")
	out, err := cmd.Output()
	require.NoError(t, err)
	assert.Contains(t, string(out), "USER=somebody\r\n")
	assert.NotRegexp(t, `TERM=dumb|TERMINFO`, string(out))
}

// A client that attaches late sees the last lines of a long output, and the end of the terminal.
func TestAttachToMuchOutput(t *testing.T) {
	s := newSite(parallel(t))
	s.daemon()
	c := s.lines()
	spawned := c.spawn(object{"program": "sh", "args": []string{"-c", `i=0; while [ $i -lt 20000 ]; do i=$((i+1)); echo "line $i"; done; printf '\033[c'; read a; echo "got $a"; exit 3`}})
	c.until("the last line", func() bool {
		return strings.HasSuffix(printedIn(c.events[max(0, len(c.events)-5):]), "line 20000\r\n\x1b[c")
	})
	w := s.window(80, 24, "attach", spawned.ID)
	w.shows("line 20000\r\n")
	text := w.printed.String()
	assert.NotContains(t, text, "line 1\r")
	assert.NotContains(t, text, "\x1b[c", "the replay has no terminal queries")
	_, shown, _ := strings.Cut(text, "detaches\r\n")
	assert.Regexp(t, `^line \d+\r\nline `, shown, "the replay begins with a whole line")
	assert.Less(t, len(shown), 64<<10+1)
	assert.Greater(t, len(shown), 60<<10)
	w.types("it\r")
	assert.Equal(t, 3, w.leaves())
	w.shows("got it")
}

// Clients can only watch an agent's terminal. In version 2 of the protocol, the agent runs the
// command itself.
func TestAttachToAnAgentsTerminal(t *testing.T) {
	t.Parallel()
	for _, version := range []string{"1", "2"} {
		t.Run("version "+version, func(t *testing.T) {
			s := newSite(parallel(t))
			bin := t.TempDir() // the agent runs ls
			testkit.Program(t, filepath.Join(bin, "ls"), "#!/bin/sh\necho one; echo two\nuntil [ -e go ]; do sleep 0.02; done\necho three\nexit 4\n")
			agent := fastProgram(t)
			s.agents(fmt.Sprintf("[agents.watched]\ndriver = \"acp\"\ncommand = [%q, \"demo-agent\", \"--protocol\", %q]\nenv = { PATH = %q, DUET_DEMO_DELAY = \"0\" }\n", agent, version, bin+":/usr/bin:/bin"))
			s.daemon()
			c := s.lines()
			l := c.launch("terminal", "watched")
			require.Eventually(t, func() bool { return len(s.terminals()) == 1 }, watchdog/3, pollEvery, "the terminal is not listed")
			found := s.terminals()[0]
			assert.Equal(t, listed{
				ID: found.ID, PID: found.PID, Program: "ls", Args: []string{"-la"}, CWD: s.root, Turn: l.SessionID, ReadOnly: true,
			}, found)
			assert.Equal(t, version == "1", found.PID != 0)
			assert.NoError(t, syscall.Kill(found.PID, 0))
			out := s.run("attach")
			assert.Regexp(t, found.ID+` +- +\d+s +ls -la +the agent of 1\.1\n`, out)

			w := s.window(80, 24, "attach", found.ID)
			w.shows("one\r\ntwo\r\n")
			assert.Contains(t, w.printed.String(), "an agent's terminal: it takes no input")
			w.types("x\x03")
			assert.Zero(t, w.leaves(), "C-c detaches, too")
			for method, params := range map[string]object{
				"terminal.write":  {"terminal_id": found.ID, "data": "x"},
				"terminal.resize": {"terminal_id": found.ID, "cols": 10, "rows": 10},
				"terminal.close":  {"terminal_id": found.ID},
				"terminal.attach": {"terminal_id": found.ID, "descriptor": true},
			} {
				assert.Equal(t, "terminal_read_only", kindOf(t, c.try(method, params, nil)), method)
			}
			w = s.window(80, 24, "attach", found.ID)
			w.shows("two\r\n")
			require.NoError(t, os.WriteFile(filepath.Join(s.root, "go"), nil, 0o600))
			w.shows("three\r\n")
			assert.Equal(t, 4, w.leaves())
			require.Eventually(t, func() bool { return len(s.terminals()) == 0 }, watchdog/3, pollEvery)
		})
	}
}

// A client that attaches and subscribes to all events receives the end of a terminal once. A
// subscription that names terminal.exited adds a second event. The spawner has gone.
func TestTheEndOfATerminalIsToldOnce(t *testing.T) {
	s := newSite(parallel(t))
	s.daemon()
	both, named, gone := s.lines(), s.lines(), s.lines()
	both.call("event.subscribe", object{}, nil)
	both.call("Subscribe", object{"event_types": []string{"session_status_changed"}}, nil) // for runs
	named.call("event.subscribe", object{"kinds": []string{"terminal.exited"}}, nil)
	r := gone.spawn(object{"program": "sh", "args": []string{"-c", "read a; exit 5"}})
	require.NoError(t, gone.conn.Close())
	s.attached(0)
	for _, c := range []*lineClient{both, named} {
		c.call("terminal.attach", object{"terminal_id": r.ID}, nil)
	}
	both.call("terminal.write", object{"terminal_id": r.ID, "data": "\r"}, nil)
	exits := func(c *lineClient) (n int) {
		for _, e := range c.events {
			if e.Type == "terminal.exited" && bytes.Contains(e.Raw, []byte(r.ID)) {
				n++
			}
		}
		return n
	}
	named.until("both terminal.exited events", func() bool { return exits(named) == 2 })
	both.until("the end", func() bool { return exits(both) > 0 })
	// A second event about the end would precede the events of a later run.
	both.runs("quiet")
	both.until("one terminal.exited event", func() bool { return exits(both) == 1 })
}

// attachedTo is the result of terminal.start and terminal.attach.
type attachedTo struct {
	ID     string `json:"terminal_id"`
	PID    int    `json:"pty_pid"`
	Cols   int
	Recent string
	Taken  bool
}

// spawn starts a terminal.
func (p *peer) spawn(params object) (r attachedTo) {
	p.t.Helper()
	p.call("terminal.start", params, &r)
	return r
}

// kindOf returns data.kind of an error.
func kindOf(t testing.TB, err error) string {
	t.Helper()
	var e *wireError
	require.True(t, errors.As(err, &e), "%v", err)
	return e.kind()
}
