package main_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// oneAtATime lets one run start at a time.
const oneAtATime = "[limits]\nmax_runs = 1\n"

// copyTo copies the project as `cp -a` does, and returns the copy, which is the
// same user's.
func (s *site) copyTo(name string) *site {
	s.t.Helper()
	copied := *s
	copied.root = filepath.Join(filepath.Dir(s.root), name)
	out, err := exec.Command("cp", "-a", s.root, copied.root).CombinedOutput() // machine: every Linux has cp
	require.NoError(s.t, err, "%s", out)
	return &copied
}

// A copy of a project whose hub is at work begins with no history, and touches nothing of the
// original.
func TestACopyOfAProjectAtWork(t *testing.T) {
	t.Parallel()
	s, c := newEditorSite(t)
	running := c.launch("stream:1000000@200", "")
	c.awaitState(running.SessionID, "running")
	others := s.copyTo("other")

	_, err := others.command("daemon", "stop", "--force")
	require.ErrorContains(t, err, "no hub runs here")
	editor := others.open()
	editor.refused("getSessionState", object{"session_id": running.SessionID})
	editor.requireNoIssue()
	editor.runs("quiet")
	assert.NotEqual(t, hubOf(t, c), hubOf(t, editor))
	editor.leave()
	assert.Equal(t, "running", c.session(running.SessionID).State)
	c.interrupt(running)
	c.leave()
}

// A project that was moved keeps everything, also what a killed process has
// left, and what was queued starts there.
func TestAMovedProject(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.agents(oneAtATime)
	c := s.open()
	done := c.runs("quiet one")
	running := c.launch("stream:1000000@200", "")
	c.awaitState(running.SessionID, "running")
	waiting := c.launch("hello", "")
	c.crash()
	moved := *s
	moved.root = filepath.Join(filepath.Dir(s.root), "moved")
	require.NoError(t, os.Rename(s.root, moved.root))
	c = moved.open()
	assert.Equal(t, "completed", c.session(done.SessionID).State)
	assert.Equal(t, "interrupted", c.session(running.SessionID).State)
	assert.Equal(t, "completed", c.approveAll(waiting.SessionID).Data.State)
	assert.FileExists(t, filepath.Join(moved.root, "demo.txt"))
	c.requireNoIssue()
	c.leave()
	c = moved.start()
	assert.Equal(t, "completed", c.session(waiting.SessionID).State)
	c.leave()
	assert.NoDirExists(t, s.root)
}

// A directory that was deleted and made again at the same path keeps its history. What was
// allowed before does not count until the user says so.
func TestADirectoryMadeAnewAllowsNothing(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	settings := []byte("[agents.own]\ndriver = \"command\"\ncommand = [\"/bin/echo\", \"{prompt}\"]\n")
	make := func() {
		require.NoError(t, os.WriteFile(filepath.Join(s.root, ".duet.toml"), settings, 0o600))
	}
	make()
	s.run("trust", "--yes")
	c := s.open()
	c.launch("quiet", "own")
	first, question := c.asks("hello", "")
	c.call("sendDecision", object{"approval_id": question.Data.ApprovalID, "decision": "approve", "scope": "project"}, nil)
	c.completes(first)
	c.leave()

	require.NoError(t, os.RemoveAll(s.root))
	require.NoError(t, os.Mkdir(s.root, 0o755))
	make()
	c = s.open()
	assert.Equal(t, "completed", c.session(first.SessionID).State, "its history is kept")
	c.requireIssue("`duet-rpc projects keep` lets them count again")
	assert.Equal(t, "not_trusted", c.refused("launchSession", object{"query": "quiet", "agent": "own"}).kind())
	second, _ := c.asks("hello", "")
	out := s.run("projects", "keep")
	assert.Contains(t, out, "counts again")
	c.requireNoIssue()
	c.approveAll(second.SessionID)
	third := c.launch("hello", "")
	e := c.await("the end, without a question", func(e event) bool {
		return e.Data.SessionID == third.SessionID && (e.Type == "new_approval" || e.Type == "session_status_changed" && ended(e.Data.State))
	})
	assert.Equal(t, "session_status_changed", e.Type)
	c.launch("quiet", "own")
	c.leave()
}

// What a killed process has left is the user's own.
func TestADatabaseOutlivesKills(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	var before []launched
	for i := range 4 {
		c := s.open()
		for _, begun := range before {
			assert.Equal(t, "completed", c.session(begun.SessionID).State)
		}
		c.requireNoIssue()
		begun := c.runs(fmt.Sprint("quiet ", i))
		before = append(before, begun)
		c.crash()
	}
}

// Any number of processes may begin in a new state directory at once.
func TestManyBeginAtOnce(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	var begun sync.WaitGroup
	for i := range 8 {
		another := *s
		another.root = filepath.Join(filepath.Dir(s.root), fmt.Sprint("project", i))
		require.NoError(t, os.Mkdir(another.root, 0o755))
		begun.Go(func() {
			_, err := another.command("prompt", "quiet")
			assert.NoError(t, err)
			assert.FileExists(t, another.database())
		})
	}
	begun.Wait()
}
