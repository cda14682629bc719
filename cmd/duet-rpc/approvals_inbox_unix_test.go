//go:build unix

package main_test

import (
	"io"
	"os"
	"strings"
	"testing"

	"github.com/creack/pty"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

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
			s := newSite(t)
			editor := s.start()
			editor.subscribe()
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
