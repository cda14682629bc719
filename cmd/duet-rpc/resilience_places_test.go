//go:build unix

package main_test

import (
	"bytes"
	"crypto/rand"
	"database/sql"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Of two processes in one project the second joins the first: it sees what
// that one runs, and answers its questions.
func TestTwoProcessesInOneProject(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	first := s.start()
	first.subscribe()
	begun := first.launch("permit:1 stream:200", "")
	question := first.awaitQuestion(begun.SessionID)

	second := s.start()
	second.requireCore()
	second.subscribe()
	require.Contains(t, second.pending(), question.Data.ApprovalID)
	second.call("sendDecision", object{"approval_id": question.Data.ApprovalID, "decision": "approve"}, nil)
	require.Equal(t, "completed", first.awaitEnd(begun.SessionID).Data.State)
	assert.Equal(t, "completed", second.awaitEnd(begun.SessionID).Data.State)
	said := first.conversation(begun.SessionID)
	assert.Equal(t, said, second.conversation(begun.SessionID))
	second.leave()
	first.leave()

	third := s.start()
	third.subscribe()
	assert.Equal(t, said, third.conversation(begun.SessionID))
	assert.Equal(t, "completed", third.awaitEnd(third.launch("quiet", "").SessionID).Data.State)
	third.leave()
}

// A process that is killed does not keep its project.
func TestTheLockDiesWithItsProcess(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	first := s.start()
	first.call("task.stats", object{}, nil)
	first.crash()
	second := s.start()
	second.call("task.stats", object{}, nil)
	second.leave()
}

// A database that cannot be used is left as it is, byte for byte, with all
// that lies beside it.
func TestABrokenDatabaseIsNotTouched(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name  string
		spoil func(t *testing.T, s *site)
		why   string
	}{
		{"random bytes", func(t *testing.T, s *site) {
			noise := make([]byte, 64<<10)
			rand.Read(noise)
			require.NoError(t, os.WriteFile(s.database(), noise, 0o600))
		}, "damaged"},
		{"a few bytes", func(t *testing.T, s *site) {
			require.NoError(t, os.Truncate(s.database(), 50))
		}, "damaged"},
		{"the first page alone", func(t *testing.T, s *site) {
			require.NoError(t, os.Truncate(s.database(), 4096))
		}, "damaged"},
		{"half of it", func(t *testing.T, s *site) {
			info, err := os.Stat(s.database())
			require.NoError(t, err)
			require.NoError(t, os.Truncate(s.database(), info.Size()/2))
		}, "damaged"},
		{"pages of noise behind the first", func(t *testing.T, s *site) {
			content, err := os.ReadFile(s.database())
			require.NoError(t, err)
			rand.Read(content[4096:])
			require.NoError(t, os.WriteFile(s.database(), content, 0o600))
		}, "damaged"},
		{"a newer format", func(t *testing.T, s *site) {
			db, err := sql.Open("sqlite", "file:"+s.database())
			require.NoError(t, err)
			defer db.Close()
			_, err = db.Exec("PRAGMA user_version = 4711")
			require.NoError(t, err)
		}, "newer"},
		{"a directory in its place", func(t *testing.T, s *site) {
			require.NoError(t, os.Remove(s.database()))
			require.NoError(t, os.Mkdir(s.database(), 0o700))
		}, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t)
			c := s.start()
			c.subscribe()
			c.awaitEnd(c.launch("tools:200 stream:100", "").SessionID)
			c.leave()
			test.spoil(t, s)
			before := contents(t, s.state())

			c = s.start()
			c.requireCore()
			c.requireUnavailable("duet-rpc doctor")
			c.requireUnavailable(test.why)
			status, issues := c.issues()
			assert.Equal(t, "degraded", status)
			assert.Contains(t, strings.Join(issues, "\n"), "duet-rpc doctor")
			c.requireCore()
			c.leave()
			for path, content := range contents(t, s.state()) {
				if name := filepath.Base(path); name == "lock" || name == "starting" || name == "stopped" || name == "daemon.log" || name == "socket" || name == "project.json" {
					continue
				}
				old, there := before[path]
				assert.True(t, there, "%s is new", path)
				assert.True(t, bytes.Equal(old, content), "%s has changed", path)
				delete(before, path)
			}
			for _, name := range []string{"lock", "starting", "stopped", "daemon.log", "socket", "project.json"} {
				delete(before, filepath.Join(s.state(), name))
			}
			assert.Empty(t, before, "files that are gone")
		})
	}
}

// contents are the files under a directory.
func contents(t testing.TB, dir string) map[string][]byte {
	t.Helper()
	files := make(map[string][]byte)
	require.NoError(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		files[path], err = os.ReadFile(path)
		return err
	}))
	return files
}

// The home directory and one that cannot be written are projects as any other, if one says so.
func TestNothingIsPutIntoTheTree(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name  string
		place func(t *testing.T, s *site)
	}{
		{"the home directory", func(_ *testing.T, s *site) { s.root = s.home }},
		{"a directory that cannot be written", func(t *testing.T, s *site) { readOnly(t, s.root) }},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t)
			test.place(t, s)
			c := s.start()
			c.subscribe()
			begun := c.launch("quiet", "")
			require.Equal(t, "completed", c.awaitEnd(begun.SessionID).Data.State)
			c.leave()
			require.NoDirExists(t, filepath.Join(s.root, ".duet"))
			info, err := os.Stat(s.state())
			require.NoError(t, err)
			assert.Equal(t, os.FileMode(0o700), info.Mode().Perm())

			c = s.start()
			assert.Equal(t, "completed", c.session(begun.SessionID).State, "it is found again")
			c.leave()
		})
	}
}

// Where nothing at all can be written the core still works.
func TestNoPlaceForState(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	readOnly(t, s.root)
	require.NoError(t, os.WriteFile(filepath.Join(s.home, "state"), nil, 0o600)) // where a directory would have to be
	c := s.start()
	c.requireCore()
	c.requireUnavailable("state")
	status, _ := c.issues()
	assert.Equal(t, "degraded", status)
	c.leave()
}
