//go:build unix

package clients

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/e2e"
	"github.com/duet-rpc/duet-rpc/internal/testkit"
)

// Commands on a terminal other than prompt.

// On a terminal, duet-rpc approvals asks the open questions one after the other, and then waits for
// the next one.
func TestApprovalsOnATerminal(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		env  []string
	}{{"without a cursor", []string{"TERM=dumb"}}, {"at 60 columns", []string{"TERM=xterm-256color"}}, {"without colour", []string{"TERM=xterm-256color", "NO_COLOR=1"}}} {
		t.Run(c.name, func(t *testing.T) {
			s, editor := e2e.NewEditorSite(e2e.Parallel(t))
			first := editor.Launch("hello", "scripted").SessionID
			editor.AwaitQuestion(first)
			second := editor.Launch("permit:1", "scripted").SessionID
			editor.AwaitQuestion(second)
			s.Env = append(s.Env, c.env...)
			p := startOnTerminal(s, t, 60, "approvals")
			p.sees("1 other waits", "+Turn 1: hello", "[?] Keys: ")
			p.presses("y", "? $ echo 1", "[?] Keys: ")
			p.presses("l", "left open")
			p.sees("no other question is open (1 question left); waiting for") // the line ends here
			editor.AwaitEnd(first)
			third := editor.Launch("permit:1", "scripted").SessionID
			p.sees("[?] Keys: ")
			editor.Call("interruptSession", object{"session_id": third}, nil) // another client is faster
			p.sees("no other question is open (1 question left); waiting for")
			fourth := editor.Launch("permit:1", "scripted").SessionID
			p.sees("[?] Keys: ")
			p.presses("n") // possibly meant for the closed question
			p.sees("not taken", "[?] Keys: ")
			p.presses("n", "no other question is open (1 question left); waiting for")
			editor.AwaitEnd(fourth)
			p.presses("\x03") // a raw terminal passes C-c as a key
			require.NoError(t, p.Cmd.Process.Signal(os.Interrupt))
			assert.Equal(t, 130, p.status(), p.tty.Printed)
			for line := range strings.Lines(p.tty.Printed.String()) {
				if strings.Contains(line, "[y] Allow") || strings.Contains(line, "[q] Quit") {
					assert.LessOrEqual(t, len(strings.TrimRight(line, "\n")), 60, line)
				}
			}
			if c.name != "at 60 columns" {
				assert.NotContains(t, strings.ReplaceAll(p.tty.Printed.String(), "\r\x1b[J", ""), e2e.Escape)
			}

			p = startOnTerminal(s, t, 60, "approvals")
			p.sees("[?] Keys: ")
			p.presses("q")
			assert.Equal(t, 0, p.status(), p.tty.Printed)
			assert.Equal(t, 1, strings.Count(p.tty.Printed.String(), "[y] Allow"), "approvals asks a skipped question once: %s", p.tty.Printed)

			p = startOnTerminal(s, t, 60, "approvals", "--once")
			p.sees("[?] Keys: ")
			p.presses("y")
			assert.Equal(t, 0, p.status(), p.tty.Printed)
			editor.AwaitEnd(second)
			p = startOnTerminal(s, t, 60, "approvals", "--list")
			assert.Equal(t, 0, p.status())
			p.sees("no question is open: no agent waits for an answer")
			editor.Leave()
		})
	}
}

// Several commands may start concurrently without a running hub.
func TestCommandsAtOnce(t *testing.T) {
	s := e2e.NewSite(e2e.Parallel(t))
	s.Run("prompt", "--yes", "quiet hello")
	var changing sync.WaitGroup
	for i := range 6 {
		changing.Go(func() {
			_, err := s.Command("session", "rename", "1", fmt.Sprintf("Title %d", i))
			assert.NoError(t, err)
		})
	}
	changing.Go(func() {
		_, err := s.Command("prompt", "--yes", "quiet there")
		assert.NoError(t, err)
	})
	changing.Wait()
	out := s.Run("session", "list")
	assert.Regexp(t, `(?m)^1 .* Title \d$`, out)
	assert.Regexp(t, `(?m)^2 +completed`, out)
}

// An editor works while a command asks whether to delete a session.
func TestAQuestionKeepsNoEditorWaiting(t *testing.T) {
	s := e2e.NewSite(e2e.Parallel(t))
	s.Run("prompt", "--yes", "quiet hello")
	p := startOnTerminal(s, t, 100, "session", "delete", "last")
	p.sees("Delete session 1 (quiet hello) for good? [y/N] ")
	editor := s.Start()
	assert.Len(t, editor.Sessions(), 1)
	p.types("y", "1 turn deleted")
	assert.Zero(t, p.status())
	assert.Empty(t, editor.Sessions())
	editor.Leave()
}

// `session pick` finds a session by a few typed letters, also without a running hub.
func TestASessionIsPicked(t *testing.T) {
	t.Parallel()
	for _, terminal := range []string{"xterm-256color", "dumb"} {
		t.Run(terminal, func(t *testing.T) {
			s := e2e.NewSite(e2e.Parallel(t))
			for _, prompt := range []string{"quiet walnuts", "quiet pears", "quiet figs"} {
				s.Run("prompt", "--yes", prompt)
			}
			s.Env = append(s.Env, "TERM="+terminal)
			p := startShell(s, t, "session", "pick") // standard output is a pipe, as in $(duet-rpc session pick)
			p.sees("quiet figs", "quiet walnuts")
			p.presses("paers\x7f\x7f\x7f\x7fear", "1/3")
			p.presses("\r")
			said := p.endsWith(0)
			assert.Equal(t, "2\n", said)

			p = startShell(s, t, "session", "pick")
			p.sees("quiet walnuts")
			p.presses("\x1b")
			said = p.endsWith(1)
			assert.Empty(t, said)

			for _, sig := range []os.Signal{os.Interrupt, syscall.SIGTERM} {
				p = startShell(s, t, "session", "pick")
				p.sees("quiet walnuts")
				p.signal(sig)
				p.endsWith(130)
				p.tty.IsRestored(t)
			}
		})
	}
}

// awaitWaiting waits until n turns wait for an answer.
func awaitWaiting(s *e2e.Site, t *testing.T, n int) {
	t.Helper()
	require.Eventually(t, func() bool {
		out, err := s.Command("session", "list", "--turns", "--state", "waiting")
		return err == nil && strings.Count(out, " waiting for you ") == n
	}, e2e.Watchdog/3, e2e.PollEvery)
}

// A prompt that continues a session reports that it waits for the previous turn.
func TestAPromptSaysForWhatItWaits(t *testing.T) {
	s := e2e.NewSite(e2e.Parallel(t))
	s.Daemon()
	s.Run("prompt", "--background", "quiet permit:1")
	awaitWaiting(s, t, 1)
	p := startPrompt(s, t, "-c", "quiet and now this")
	p.sees("waiting for the previous turn or a free slot")
	s.Run("daemon", "stop", "--force")
	p.ends()
}

// In a narrow terminal, the list of agents does not cut the installation commands.
func TestAgentsAreListedAtSixtyColumns(t *testing.T) {
	s := e2e.NewSite(e2e.Parallel(t))
	programs := filepath.Join(s.Home, "programs")
	require.NoError(t, os.MkdirAll(programs, 0o700))
	for name, text := range map[string]string{"claude": "", "gemini": "echo 1.2.3"} {
		testkit.Program(t, filepath.Join(programs, name), "#!/bin/sh\n"+text+"\n")
	}
	s.Env = append(s.Env, "PATH="+programs+":/usr/bin:/bin", "TERM=xterm-256color")
	p := startOnTerminal(s, t, 60, "agents")
	p.sees("` asks.")
	require.Zero(t, p.status())
	said := strings.ReplaceAll(p.tty.Printed.String(), "\r", "")
	table, notes, ok := strings.Cut(said, "\n\n")
	require.True(t, ok, said)
	for line := range strings.Lines(table) {
		assert.LessOrEqual(t, len([]rune(strings.TrimRight(line, "\n"))), 60, line)
	}
	assert.Regexp(t, `(?m)^ +AGENT +STATE +(SOURCE +)?VERSION +SIGNED IN$`, table)
	assert.Regexp(t, `(?m)^.. gemini +available .* 1\.2\.3 +not known$`, table)
	assert.Regexp(t, `(?m)^.. claude +needs adapter .*- +-$`, table)
	notes = strings.Join(strings.Fields(notes), " ") // its lines are wrapped
	assert.Contains(t, notes, "claude: npm install -g @agentclientprotocol/claude-agent-acp (")
	assert.Contains(t, notes, "`duet-rpc agents check scripted gemini` asks.")
}

// A second signal ends a command that the first one has not ended.
func TestSecondSignalEndsACommandAtOnce(t *testing.T) {
	s := e2e.NewSite(e2e.Parallel(t))
	pid := s.Daemon()
	p := startPrompt(s, t, "quiet permit:1")
	p.sees("[?] Keys: ")
	e2e.SuspendHub(t, pid)
	require.NoError(t, p.Cmd.Process.Signal(syscall.SIGINT))
	p.sees("press C-c again to end at once")
	require.NoError(t, p.Cmd.Process.Signal(syscall.SIGINT))
	<-p.Ended
	assert.Equal(t, 130, p.Cmd.ProcessState.ExitCode())
}
