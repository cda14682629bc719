//go:build unix

package main_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Any number of commands may begin at once where no hub runs: one daemon serves them all.
func TestCommandsAtOnce(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	_, err := s.command("prompt", "--yes", "quiet hello")
	require.NoError(t, err)
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
	out, err := s.command("session", "list")
	require.NoError(t, err)
	assert.Regexp(t, `task-0001 .* Title \d\n`, out)
	assert.Regexp(t, `task-0002 +completed`, out)
}

// No request waits while a user is asked whether to delete a session.
func TestAQuestionKeepsNoEditorWaiting(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	_, err := s.command("prompt", "--yes", "quiet hello")
	require.NoError(t, err)
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
				_, err := s.command("prompt", "--yes", prompt)
				require.NoError(t, err)
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
	_, err := s.command("task", "submit", "quiet permit:1")
	require.NoError(t, err)
	s.awaitWaiting(t, 1)
	p := s.prompt(t, "-c", "quiet and now this")
	p.sees("waiting for the previous turn or a free slot")
	_, err = s.command("daemon", "stop", "--force")
	require.NoError(t, err)
	p.ends()
}
