package main_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
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

// agentsAlive are the agents of all of the user's projects.
func (s *site) agentsAlive() (list []running) {
	for _, r := range s.running() {
		if strings.Contains(r.command, "demo-agent") {
			list = append(list, r)
		}
	}
	return list
}

// A copy of a project whose hub is at work touches nothing of the original. It
// has its history, and nothing else.
func TestACopyOfAProjectAtWork(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.agents(oneAtATime)
	c := s.start()
	c.subscribe()
	done := c.launch("quiet one", "")
	require.Equal(t, "completed", c.awaitEnd(done.SessionID).Data.State)
	running := c.launch("stream:1000000@200", "")
	c.await("a sign of life", func(e event) bool {
		return e.Data.SessionID == running.SessionID && e.Type == "message_delta"
	})
	waiting := c.launch("hello", "")
	agents := s.agentsAlive()
	require.NotEmpty(t, agents)
	others := s.copyTo("other")

	// Before anything of it is opened: who answers there, and whom a stop ends.
	_, err := others.command("daemon", "stop", "--force")
	require.ErrorContains(t, err, "no hub runs here")
	editor := others.start()
	editor.subscribe()
	assert.Equal(t, "completed", editor.session(done.SessionID).State)
	assert.Equal(t, "interrupted", editor.session(running.SessionID).State)
	editor.refused("getSessionState", object{"session_id": waiting.SessionID})
	_, issues := editor.issues()
	require.Len(t, issues, 1)
	assert.Contains(t, issues[0], "is a copy")
	assert.Contains(t, issues[0], "2 conversations with 2 sessions")
	var on launched
	editor.call("continueSession", object{"session_id": done.SessionID, "query": "quiet two"}, &on)
	assert.Equal(t, "completed", editor.awaitEnd(on.SessionID).Data.State)
	assert.Contains(t, editor.conversation(on.SessionID), "quiet one")
	assert.NotEqual(t, hubOf(t, c), hubOf(t, editor))
	assert.NoFileExists(t, filepath.Join(others.root, "demo.txt"))
	editor.leave()
	_, err = others.command("prompt", "quiet")
	require.NoError(t, err)
	_, err = others.command("doctor")
	require.NoError(t, err)

	assert.Subset(t, s.agentsAlive(), agents, "the original's agents live on")
	assert.Equal(t, "running", c.session(running.SessionID).State)
	c.call("interruptSession", object{"session_id": running.SessionID}, nil)
	assert.Equal(t, "interrupted", c.awaitEnd(running.SessionID).Data.State)
	c.awaitQuestion(waiting.SessionID) // it was queued there, and nowhere else
	c.leave()
	s.requireNobody("when both have ended")
}

// A copy that shares its files with the original would share its lock, too.
func TestACopyOfLinks(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	c := s.start()
	hub := hubOf(t, c)
	others := *s
	others.root = filepath.Join(filepath.Dir(s.root), "other")
	out, err := exec.Command("cp", "-al", s.root, others.root).CombinedOutput() // machine: every Linux has cp
	require.NoError(t, err, "%s", out)
	_, err = others.command("daemon", "stop", "--force")
	require.ErrorContains(t, err, "has another name elsewhere")
	_, err = others.command("prompt", "quiet")
	require.ErrorContains(t, err, "has another name elsewhere")
	require.NoError(t, os.RemoveAll(others.root))
	assert.Equal(t, hub, hubOf(t, c))
	c.leave()
}

// A project that was moved keeps everything, also what a killed process has
// left, and what was queued starts there.
func TestAMovedProject(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.agents(oneAtATime)
	c := s.start()
	c.subscribe()
	done := c.launch("quiet one", "")
	require.Equal(t, "completed", c.awaitEnd(done.SessionID).Data.State)
	running := c.launch("stream:1000000@200", "")
	c.awaitState(running.SessionID, "running")
	waiting := c.launch("hello", "")
	c.crash()
	moved := *s
	moved.root = filepath.Join(filepath.Dir(s.root), "moved")
	require.NoError(t, os.Rename(s.root, moved.root))
	c = moved.start()
	c.subscribe()
	assert.Equal(t, "completed", c.session(done.SessionID).State)
	assert.Equal(t, "interrupted", c.session(running.SessionID).State)
	assert.Equal(t, "completed", c.approveAll(waiting.SessionID).Data.State)
	assert.FileExists(t, filepath.Join(moved.root, "demo.txt"))
	_, issues := c.issues()
	assert.Empty(t, issues)
	c.leave()
	c = moved.start()
	assert.Equal(t, "completed", c.session(waiting.SessionID).State)
	c.leave()
	assert.NoDirExists(t, s.root)
}

// What a killed process has left is the user's own.
func TestADatabaseOutlivesKills(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	var before []launched
	for i := range 4 {
		c := s.start()
		c.subscribe()
		for _, told := range before {
			assert.Equal(t, "completed", c.session(told.SessionID).State)
		}
		_, issues := c.issues()
		assert.Empty(t, issues)
		told := c.launch(fmt.Sprint("quiet ", i), "")
		require.Equal(t, "completed", c.awaitEnd(told.SessionID).Data.State)
		before = append(before, told)
		c.crash()
	}
}

// With a key of the environment the home may be a new one, and the files, too.
func TestTheKeyOfTheEnvironment(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	key := "DUET_DATABASE_KEY=0123456789abcdef"
	s.env = []string{key}
	c := s.start()
	c.subscribe()
	told := c.launch("quiet one", "")
	require.Equal(t, "completed", c.awaitEnd(told.SessionID).Data.State)
	c.leave()
	require.NoFileExists(t, filepath.Join(s.home, "state", "duet", "database-key"))

	next := newSite(t) // another home
	next.root, next.env = s.root, s.env
	// As from an image: the same place, other files.
	out, err := exec.Command("sh", "-c", `cp -a "$1" "$1.image" && rm -r "$1" && mv "$1.image" "$1"`, "sh", s.root).CombinedOutput()
	require.NoError(t, err, "%s", out)
	c = next.start()
	c.subscribe()
	assert.Equal(t, "completed", c.session(told.SessionID).State)
	_, issues := c.issues()
	assert.Empty(t, issues)
	c.leave()

	for wrong, says := range map[string]string{
		"DUET_DATABASE_KEY=0123456789abcde":  "at least 16",
		"DUET_DATABASE_KEY=0123456789abcdeF": "",
		"NOTHING=":                           "",
	} {
		other := next.copyTo(strings.ReplaceAll(wrong, "=", ""))
		other.env = []string{wrong}
		c = other.start()
		c.requireCore()
		if says != "" {
			c.requireUnavailable(says)
			c.requireUnavailable("DUET_DATABASE_KEY")
		} else {
			c.refused("getSessionState", object{"session_id": told.SessionID})
			other.aside()
		}
		c.leave()
	}
}

// A project's file cannot give the key.
func TestAProjectDoesNotGiveTheKey(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	require.NoError(t, os.WriteFile(filepath.Join(s.root, ".env"), []byte("DUET_DATABASE_KEY=0123456789abcdef\n"), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(s.root, ".duet.toml"), []byte("database_key = \"0123456789abcdef\"\n"), 0o600))
	_, err := s.command("config", "--check")
	require.ErrorContains(t, err, "the configuration has 1 mistake")
}

// Any number of processes that begin with a new home make one key.
func TestManyBeginAtOnce(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	var sites []*site
	for i := range 8 {
		another := *s
		another.root = filepath.Join(filepath.Dir(s.root), fmt.Sprint("project", i))
		require.NoError(t, os.Mkdir(another.root, 0o755))
		sites = append(sites, &another)
	}
	for range 2 { // the second time each knows what it has made
		var begun sync.WaitGroup
		for _, site := range sites {
			begun.Go(func() {
				_, err := site.command("prompt", "quiet")
				assert.NoError(t, err)
			})
		}
		begun.Wait()
	}
	for _, site := range sites {
		found, err := filepath.Glob(filepath.Join(site.state(), "set-aside-*"))
		require.NoError(t, err)
		assert.Empty(t, found)
	}
	info, err := os.Stat(filepath.Join(s.home, "state", "duet", "database-key"))
	require.NoError(t, err)
	assert.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	assert.EqualValues(t, 32, info.Size())
}

// Without a key there are no sessions, and it is said how to get one.
func TestNoKey(t *testing.T) {
	t.Parallel()
	for name, spoil := range map[string]func(t *testing.T, s *site){
		"no place for it": func(t *testing.T, s *site) {
			require.NoError(t, os.WriteFile(filepath.Join(s.home, "state"), nil, 0o600))
		},
		"a place that others can write to": func(t *testing.T, s *site) {
			require.NoError(t, os.MkdirAll(filepath.Join(s.home, "state", "duet"), 0o700))
			require.NoError(t, os.Chmod(filepath.Join(s.home, "state", "duet"), 0o777))
		},
		"one that others can read": func(t *testing.T, s *site) {
			require.NoError(t, os.MkdirAll(filepath.Join(s.home, "state", "duet"), 0o700))
			require.NoError(t, os.WriteFile(filepath.Join(s.home, "state", "duet", "database-key"), make([]byte, 32), 0o600))
			require.NoError(t, os.Chmod(filepath.Join(s.home, "state", "duet", "database-key"), 0o644))
		},
		"a short one": func(t *testing.T, s *site) {
			require.NoError(t, os.MkdirAll(filepath.Join(s.home, "state", "duet"), 0o700))
			require.NoError(t, os.WriteFile(filepath.Join(s.home, "state", "duet", "database-key"), make([]byte, 31), 0o600))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t)
			spoil(t, s)
			c := s.start()
			c.requireCore()
			c.requireUnavailable("the key by which your databases are known cannot be had")
			c.requireUnavailable("DUET_DATABASE_KEY")
			c.leave()
			out, err := s.command("doctor")
			require.Error(t, err)
			assert.Contains(t, out, "DUET_DATABASE_KEY")
			s.env = []string{"DUET_DATABASE_KEY=0123456789abcdef"}
			_, err = s.command("prompt", "quiet")
			require.NoError(t, err)
		})
	}
}
