//go:build unix

package main_test

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/creack/pty"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/term"
)

// presses types keys, without Return.
func (p *prompting) presses(keys string) {
	p.t.Helper()
	_, err := p.tty.ours.WriteString(keys)
	require.NoError(p.t, err)
}

// A question is answered by one key, which is shown, and the terminal is afterwards
// as it was.
func TestAKeyAnswersAQuestion(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	p := s.prompt(t, "slow", "permit:5")
	was, err := term.GetState(int(p.tty.theirs.Fd()))
	require.NoError(t, err)
	p.sees("task-0001")
	p.presses("y") // before anything is asked
	p.sees("Allow? ")
	p.presses("x")
	p.sees("please type y, n")
	p.sees("Allow? ")
	p.presses("y")
	p.sees(": y\n")
	p.sees("Allow? ")
	p.presses("n") // denies at once
	p.sees("Allow? ")
	p.presses("t")
	p.sees("Why not? ")
	p.types("because")
	p.sees("Allow? ")
	p.presses("\x1b[A")
	p.sees("please type y, n")
	p.sees("Allow? ")
	p.presses("y")
	p.sees("Allow? ")
	p.presses("\x04") // the end of the input
	_, status := p.ends()
	assert.Equal(t, 0, status, p.tty.printed)
	now, err := term.GetState(int(p.tty.theirs.Fd()))
	require.NoError(t, err)
	assert.Equal(t, was, now)
	assert.Equal(t, 7, strings.Count(p.tty.printed.String(), "Allow? "), p.tty.printed)
}

// Keys that are typed while the agent talks do not appear in its words.
func TestKeysDoNotAppearInTheAgentsWords(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	w := s.window(80, 24, "prompt", "quiet", "stuck")
	w.shows("● ")
	w.types("what is this")
	require.NoError(t, w.cmd.Process.Signal(os.Interrupt)) // C-c discards what was typed
	w.shows("interrupting")
	assert.Equal(t, 130, w.leaves())
	words, _, _ := strings.Cut(w.printed.String(), "interrupting")
	assert.NotContains(t, words, "what is this")
	ours, fresh, err := pty.Open()
	require.NoError(t, err)
	defer func() { ours.Close(); fresh.Close() }()
	before, err := term.GetState(int(fresh.Fd()))
	require.NoError(t, err)
	after, err := term.GetState(int(w.keys.Fd()))
	require.NoError(t, err)
	assert.Equal(t, before, after, "the echo is on again")
}

// One of the answers that a question offers is chosen by one key, too.
func TestAKeyChooses(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	p := s.prompt(t, "quiet ask")
	p.sees("Choose 1 to 3, . for none of them: ")
	p.presses("x")
	p.sees("please type 1 to 3, . for none of them")
	p.sees("Choose 1 to 3, . for none of them: ")
	p.presses("2")
	said, status := p.ends()
	assert.Equal(t, 0, status, p.tty.printed)
	assert.Contains(t, said, "green")

	editor := s.open()
	session := editor.launch("quiet ask", "scripted").SessionID
	editor.awaitQuestion(session)
	p = s.onTerminal(t, 60, "approvals", "--once")
	p.sees("Choose 1 to 3, . for none of them, [s]kip, [q]uit: ")
	p.presses("s")
	p.sees("left open")
	assert.Equal(t, 0, p.status())
	p = s.onTerminal(t, 60, "approvals")
	p.sees("[q]uit: ")
	p.presses("3")
	p.sees("waiting for the next")
	editor.awaitEnd(session)
	assert.Contains(t, editor.conversation(session), "blue")
	require.NoError(t, p.cmd.Process.Signal(os.Interrupt))
	assert.Equal(t, 130, p.status())
	editor.leave()
}

// The input of a tool is changed in the user's editor, shown, and asked again.
func TestAnEditorChangesTheInput(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.env = append(s.env, `EDITOR=sh -c 'grep -q Gone "$0" && echo "{" >"$0" || sed s/Turn/Gone/ "$0" >"$0.new" && test -s "$0.new" && mv "$0.new" "$0"; true'`)
	p := s.prompt(t, "hello")
	p.sees("[e]dit: ")
	p.presses("e")
	p.sees("| Gone 1: hello\n")
	p.sees("Allow it with this input? [y]es, [n]o, [t]ell why not, [e]dit again: ")
	p.presses("e")
	p.sees("that is no JSON object")
	p.sees("[e]dit: ")
	p.presses("n")
	_, status := p.ends()
	assert.Equal(t, 0, status, p.tty.printed)

	s.env = append(s.env, "EDITOR=sed -i.old s/Turn/Gone/")
	p = s.prompt(t, "hello")
	p.sees("[e]dit: ")
	p.presses("e")
	p.sees("[e]dit again: ")
	p.presses("y")
	p.sees("+Gone 1: hello")
	_, status = p.ends()
	assert.Equal(t, 0, status, p.tty.printed)

	for editor, says := range map[string]string{"true": "the input stays as it is", "false": "the editor: false: exit status 1"} {
		s.env = append(s.env, "EDITOR="+editor)
		p = s.prompt(t, "hello")
		p.sees("[e]dit: ")
		p.presses("e")
		p.sees(says)
		p.sees("[e]dit: ")
		p.presses("y")
		_, status = p.ends()
		assert.Equal(t, 0, status, p.tty.printed)
	}
}

// onTerminal runs a command whose standard input and outputs are a terminal of so
// many columns.
func (s *site) onTerminal(t *testing.T, columns uint16, args ...string) *prompting {
	t.Helper()
	tty := openTerminal(t)
	require.NoError(t, pty.Setsize(tty.theirs, &pty.Winsize{Rows: 24, Cols: columns}))
	l := s.launch()
	l.args = append(args, l.args...)
	l.stdin, l.stdout, l.stderr = tty.theirs, tty.theirs, tty.theirs
	return &prompting{process: l.start(t), tty: tty}
}

// status waits for the end and for all that was printed, and returns the exit status.
func (p *prompting) status() int {
	<-p.ended
	const mark = "\x00"
	if _, err := io.WriteString(p.tty.theirs, mark); err == nil {
		p.tty.printed.AwaitPart(p.t, mark)
	}
	return p.cmd.ProcessState.ExitCode()
}

// On a terminal the open questions are gone through one after the other, and the
// next one is waited for.
func TestApprovalsOnATerminal(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		env  []string
	}{{"without a cursor", []string{"TERM=dumb"}}, {"at 60 columns", []string{"TERM=xterm-256color"}}, {"without colour", []string{"TERM=xterm-256color", "NO_COLOR=1"}}} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s, editor := newEditorSite(t)
			first := editor.launch("hello", "scripted").SessionID
			editor.awaitQuestion(first)
			second := editor.launch("permit:1", "scripted").SessionID
			editor.awaitQuestion(second)
			s.env = append(s.env, c.env...)
			p := s.onTerminal(t, 60, "approvals")
			p.sees("1 other waits")
			p.sees("+Turn 1: hello")
			p.sees("[q]uit: ")
			p.presses("y")
			p.sees("? $ echo 1")
			p.sees("[q]uit: ")
			p.presses("s")
			p.sees("left open")
			p.sees("no other question is open (1 question left); waiting for") // the line ends here
			editor.awaitEnd(first)
			third := editor.launch("permit:1", "scripted").SessionID
			p.sees("[q]uit: ")
			editor.call("interruptSession", object{"session_id": third}, nil) // another client is faster
			p.sees("no other question is open (1 question left); waiting for")
			fourth := editor.launch("permit:1", "scripted").SessionID
			p.sees("[q]uit: ")
			p.presses("n") // perhaps meant for the question that has gone
			p.sees("not taken")
			p.sees("[q]uit: ")
			p.presses("n")
			p.sees("no other question is open (1 question left); waiting for")
			editor.awaitEnd(fourth)
			p.presses("\x03") // which this terminal, being raw, takes for a key
			require.NoError(t, p.cmd.Process.Signal(os.Interrupt))
			assert.Equal(t, 130, p.status(), p.tty.printed)
			for line := range strings.Lines(p.tty.printed.String()) {
				if strings.Contains(line, "Allow?") || strings.Contains(line, "[q]uit") {
					assert.LessOrEqual(t, len(strings.TrimRight(line, "\n")), 60, line)
				}
			}
			if c.name != "at 60 columns" {
				assert.NotContains(t, strings.ReplaceAll(p.tty.printed.String(), "\r\x1b[J", ""), escape)
			}

			p = s.onTerminal(t, 60, "approvals")
			p.sees("[q]uit: ")
			p.presses("q")
			assert.Equal(t, 0, p.status(), p.tty.printed)
			assert.Equal(t, 1, strings.Count(p.tty.printed.String(), "Allow?"), "a question that is left is not repeated: %s", p.tty.printed)

			p = s.onTerminal(t, 60, "approvals", "--once")
			p.sees("[q]uit: ")
			p.presses("y")
			assert.Equal(t, 0, p.status(), p.tty.printed)
			editor.awaitEnd(second)
			p = s.onTerminal(t, 60, "approvals", "--list")
			assert.Equal(t, 0, p.status())
			p.sees("no question is open: no agent waits for an answer")
			editor.leave()
		})
	}
}

// Any number of commands may begin at once where no hub runs: one daemon serves them all.
func TestCommandsAtOnce(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.run("prompt", "--yes", "quiet hello")
	var changing sync.WaitGroup
	for i := range 6 {
		changing.Go(func() {
			_, err := s.command("session", "rename", "task-0001", fmt.Sprintf("Title %d", i))
			assert.NoError(t, err)
		})
	}
	changing.Go(func() {
		_, err := s.command("prompt", "--yes", "quiet there")
		assert.NoError(t, err)
	})
	changing.Wait()
	out := s.run("session", "list")
	assert.Regexp(t, `task-0001 .* Title \d\n`, out)
	assert.Regexp(t, `task-0002 +completed`, out)
}

// No request waits while a user is asked whether to delete a session.
func TestAQuestionKeepsNoEditorWaiting(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.run("prompt", "--yes", "quiet hello")
	p := s.onTerminal(t, 100, "session", "delete", "last")
	p.sees("Delete the conversation of task-0001 (quiet hello) for good? [y/N] ")
	editor := s.start()
	p.types("y")
	p.sees("1 session deleted")
	assert.Zero(t, p.status())
	var r struct{ Sessions []object }
	editor.call("listSessions", object{}, &r)
	assert.Empty(t, r.Sessions)
	editor.leave()
}

// A session is picked with a few typed letters, where no hub runs, too.
func TestASessionIsPicked(t *testing.T) {
	t.Parallel()
	for _, terminal := range []string{"xterm-256color", "dumb"} {
		t.Run(terminal, func(t *testing.T) {
			t.Parallel()
			s := newSite(t)
			for _, prompt := range []string{"quiet walnuts", "quiet pears", "quiet figs"} {
				s.run("prompt", "--yes", prompt)
			}
			s.env = append(s.env, "TERM="+terminal)
			p := s.shell(t, "session", "pick") // its standard output is a pipe, as in $(duet-rpc session pick)
			p.sees("quiet figs")
			p.sees("quiet walnuts")
			p.presses("paers\x7f\x7f\x7f\x7fear")
			p.sees("1/3")
			p.presses("\r")
			said, status := p.ends()
			assert.Zero(t, status, p.tty.printed)
			assert.Equal(t, "task-0002\n", said)

			p = s.shell(t, "session", "pick")
			p.sees("quiet walnuts")
			p.presses("\x1b")
			said, status = p.ends()
			assert.Equal(t, 1, status)
			assert.Empty(t, said)
		})
	}
}

// awaitWaiting waits until so many tasks wait for an answer.
func (s *site) awaitWaiting(t *testing.T, n int) {
	t.Helper()
	require.Eventually(t, func() bool {
		out, err := s.command("task", "list", "--state", "running")
		return err == nil && strings.Count(out, "waiting") == n
	}, watchdog/3, pollEvery)
}

// A prompt that goes on with a conversation whose last turn waits for an answer says so.
func TestAPromptSaysForWhatItWaits(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.daemon()
	s.run("task", "submit", "quiet permit:1")
	s.awaitWaiting(t, 1)
	p := s.prompt(t, "-c", "quiet and now this")
	p.sees("waiting for the previous turn or a free slot")
	s.run("daemon", "stop", "--force")
	p.ends()
}
