//go:build unix

package main_test

import (
	"fmt"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// readings are commands that are answered without a hub.
var readings = [][]string{
	{"session", "list"},
	{"session", "show", "task-0001"},
	{"task", "list"},
	{"task", "stats"},
	{"approvals"},
	{"approvals", "rules"},
	{"events", "--no-follow"},
	{"search", "permit"},
}

// What a hub that was killed has left is read as it is: nothing is recovered before
// there is a hub, and whoever wants to be it finds nobody in the way.
func TestHistoryOfAHubThatWasKilled(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	pid := s.daemon()
	_, err := s.command("task", "submit", "quiet permit:1")
	require.NoError(t, err)
	_, err = s.command("task", "submit", "quiet hang")
	require.NoError(t, err)
	_, err = s.command("approvals", "--wait")
	require.NoError(t, err)
	s.killHub(pid)
	files := s.contents()
	require.Contains(t, files, "duet.db-wal", "it was killed")
	for _, args := range readings {
		_, err := s.command(args...)
		require.NoError(t, err, "%v", args)
	}
	out, err := s.command("task", "list")
	require.NoError(t, err)
	assert.Regexp(t, `task-0001 +waiting`, out, "as it was kept")
	assert.Equal(t, files, s.contents())

	editor := s.start()
	require.Equal(t, editor.cmd.Process.Pid, hubOf(t, editor))
	out, err = s.command("session", "list")
	require.NoError(t, err)
	assert.Regexp(t, `task-0001 +interrupted`, out, "now there is a hub")
	editor.leave()
}

// An answer where no hub runs goes on with the session in the process that answers.
func TestAnAnswerWithoutAHub(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.daemon()
	for range 2 {
		_, err := s.command("task", "submit", "quiet permit:1")
		require.NoError(t, err)
	}
	var ids []string
	c := s.lines()
	for len(ids) < 2 {
		var r struct {
			Approvals []struct {
				ID string `json:"approval_id"`
			}
		}
		_, err := s.command("approvals", "--wait")
		require.NoError(t, err)
		c.call("fetchApprovals", object{}, &r)
		ids = nil
		for _, a := range r.Approvals {
			ids = append(ids, a.ID)
		}
	}
	_, err := s.command("daemon", "stop")
	require.NoError(t, err)

	p := s.shell(t, "approvals", "approve", ids[0])
	p.sees("no hub ran here, and the agent that asked is gone: its session goes on after task-000")
	p.sees("approved")
	p.sees("task-0003 · agent scripted")
	p.sees("completed")
	_, status := p.ends()
	assert.Zero(t, status)

	p = s.shell(t, "approvals", "deny", ids[1], "not now")
	p.sees("the answer is kept, and nothing goes on before task-000")
	p.sees("denied")
	_, status = p.ends()
	assert.Zero(t, status)
	out, err := s.command("approvals")
	require.NoError(t, err)
	assert.NotContains(t, out, "task-")
	out, err = s.command("task", "stats")
	require.NoError(t, err)
	assert.Regexp(t, `total +3`, out)
}

// A change where no hub runs recovers what a hub that was killed has left, and starts
// nothing that is queued.
func TestAChangeWithoutAHubStartsNothing(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.env = append(s.env, "DUET_MAX_RUNS=1")
	pid := s.daemon()
	for _, prompt := range []string{"quiet hang", "quiet second", "quiet third"} {
		_, err := s.command("task", "submit", prompt)
		require.NoError(t, err)
	}
	s.killHub(pid)
	_, err := s.command("session", "rename", "task-0002", "Renamed")
	require.NoError(t, err)
	_, err = s.command("task", "cancel", "task-0003")
	require.NoError(t, err)
	out, err := s.command("task", "list")
	require.NoError(t, err)
	assert.Regexp(t, `task-0001 +cancelled: ORPHANED`, out)
	assert.Regexp(t, `task-0002 +queued`, out)
	assert.Regexp(t, `task-0003 +cancelled`, out)
	out, err = s.command("session", "list")
	require.NoError(t, err)
	assert.Contains(t, out, "Renamed")
	s.requireNobody("the changes")

	_, err = s.command("session", "delete", "--yes", "task-0001") // which nobody runs any more
	require.NoError(t, err)
	editor := s.start() // and the hub goes on with what is queued
	require.Equal(t, editor.cmd.Process.Pid, hubOf(t, editor))
	require.Eventually(t, func() bool {
		out, err := s.command("task", "list", "--state", "completed")
		return err == nil && strings.Contains(out, "task-0002")
	}, watchdog/3, pollEvery)
	editor.leave()
}

// Any number of commands may change what is kept at once, beside one that is the hub.
func TestChangesWithoutAHubAtOnce(t *testing.T) {
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

// Nobody waits while somebody is asked whether to delete a session.
func TestAQuestionKeepsNoEditorWaiting(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	_, err := s.command("prompt", "--yes", "quiet hello")
	require.NoError(t, err)
	p := s.onTerminal(t, 100, "session", "delete", "last")
	p.sees("Delete the conversation of task-0001 (quiet hello) for good? [y/N] ")
	editor := s.start()
	require.Equal(t, editor.cmd.Process.Pid, hubOf(t, editor))
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

// killHub kills the process that is the hub, and waits until nobody is it.
func (s *site) killHub(pid int) {
	s.t.Helper()
	require.NoError(s.t, syscall.Kill(pid, syscall.SIGKILL))
	require.Eventually(s.t, func() bool {
		_, err := s.command("daemon", "status")
		return err != nil
	}, watchdog/3, pollEvery, "process %d is the hub still", pid)
}

// contents are the files in the project's state directory that matter, by name.
func (s *site) contents() map[string]string {
	s.t.Helper()
	files := make(map[string]string)
	entries, err := os.ReadDir(s.state())
	require.NoError(s.t, err)
	for _, e := range entries {
		if !e.Type().IsRegular() {
			files[e.Name()] = e.Type().String()
			continue
		}
		text, err := os.ReadFile(s.state() + "/" + e.Name())
		require.NoError(s.t, err)
		files[e.Name()] = string(text)
	}
	return files
}

// On a terminal the questions that were left open are gone through where no hub runs,
// too, and what an answer lets go on is shown.
func TestQuestionsAreGoneThroughWithoutAHub(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.daemon()
	for n := range 3 {
		_, err := s.command("task", "submit", "quiet permit:1")
		require.NoError(t, err)
		s.awaitWaiting(t, n+1)
	}
	_, err := s.command("daemon", "stop")
	require.NoError(t, err)

	p := s.onTerminal(t, 100, "--no-color", "approvals")
	p.sees("no hub runs here: a session that you answer goes on in this process, until it ends")
	p.sees("task-0001 · agent scripted")
	p.sees("2 others wait")
	p.sees("[q]uit: ")
	p.presses("y")
	p.sees("task-0004 · agent scripted")
	p.sees("completed")
	p.sees("task-0002 · agent scripted")
	p.sees("1 other waits")
	p.sees("[q]uit: ")
	p.presses("n")
	p.sees("the answer is kept, and nothing goes on before task-0002 is continued")
	p.sees("task-0003 · agent scripted")
	p.sees("[q]uit: ")
	p.presses("s")
	p.sees("1 question left open")
	assert.Zero(t, p.status(), p.tty.printed)
	s.requireNobody("the answers")

	p = s.onTerminal(t, 100, "--no-color", "approvals")
	p.sees("task-0003")
	p.sees("[q]uit: ")
	p.presses("y")
	p.sees("completed")
	assert.Zero(t, p.status(), p.tty.printed)

	p = s.onTerminal(t, 100, "--no-color", "approvals") // and where none is open no hub begins
	p.sees("no question is open")
	assert.Zero(t, p.status(), p.tty.printed)
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
	p.sees("waiting for the conversation's turn before to end, or for a")
	_, err = s.command("daemon", "stop", "--force")
	require.NoError(t, err)
	p.ends()
}
