//go:build unix

package main_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/project"
)

// A hub whose directory is removed or replaced under it, as git clean -fdx does,
// confirms nothing that is lost; a moment later there is one hub again.
func TestStateDirectoryIsRemovedUnderAHub(t *testing.T) {
	t.Parallel()
	for name, remove := range map[string]func(t *testing.T, s *site){
		"removed":             removeState,
		"moved away":          func(t *testing.T, s *site) { require.NoError(t, os.Rename(s.state(), filepath.Join(s.home, "away"))) },
		"the lock is removed": func(t *testing.T, s *site) { require.NoError(t, os.Remove(filepath.Join(s.state(), "lock"))) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, editor := newEditorSite(t)
			other := s.open()
			hub := hubOf(t, other)
			editor.runs("quiet one")

			remove(t, s)
			s.requireNotOf(hub, editor.try("launchSession", object{"query": "quiet two"}, nil))

			// There is a hub again, for the editors that were there and for those that come.
			var begun launched
			require.Eventually(t, func() bool {
				return editor.try("launchSession", object{"query": "quiet three"}, &begun) == nil
			}, watchdog/3, 100*time.Millisecond, "there is no hub again")
			next := s.lockHolder()
			assert.NotEqual(t, hub, next)
			third := s.open()
			for _, c := range []*client{other, third} {
				require.Eventually(t, func() bool { // the editor that has just lost its hub learns it
					var status struct{ PID int }
					return c.try("daemon.status", object{}, &status) == nil && status.PID == next
				}, watchdog/3, 100*time.Millisecond, "another editor has another hub")
			}
			editor.requireNoIssue()
			begun = third.launch("quiet four", "")
			for _, c := range []*client{editor, other, third} {
				c.completes(begun)
			}
			for _, c := range []*client{third, other, editor} {
				c.leave()
			}
		})
	}
}

// removeState removes the state directory. The hub may create files in it meanwhile.
func removeState(t *testing.T, s *site) {
	require.Eventually(t, func() bool { return os.RemoveAll(s.state()) == nil }, watchdog/3, pollEvery)
}

// requireNotOf requires that a daemon which has lost its files has confirmed nothing: the request
// failed, or the next daemon has got it.
func (s *site) requireNotOf(hub int, err error) {
	s.t.Helper()
	if err == nil {
		require.NotEqual(s.t, hub, s.lockHolder())
		return
	}
	var e *wireError
	require.ErrorAs(s.t, err, &e)
	if e.kind() != "hub_lost" {
		require.Equal(s.t, "subsystem_unavailable", e.kind())
		require.Contains(s.t, e.Message, "the project's directory or its state was removed, moved or replaced")
	}
}

// Where another process has become the hub meanwhile the old one ends: there is one at any time.
func TestHubThatWasReplacedEnds(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	editor := s.start()
	editor.launch("quiet", "")
	hub := hubOf(t, editor)
	p := project.Project{Root: s.root, StateDir: filepath.Join(s.home, "other")}
	require.NoError(t, p.Prepare())
	lock, err := p.Lock(t.Context())
	require.NoError(t, err)
	require.NoError(t, os.Rename(s.state(), filepath.Join(s.home, "away")))
	require.NoError(t, os.Rename(p.StateDir, s.state()))
	require.Eventually(t, func() bool { return syscall.Kill(hub, 0) != nil }, watchdog/3, pollEvery, "process %d goes on", hub)
	require.NoError(t, lock.Close())
	require.Eventually(t, func() bool { return editor.try("listSessions", object{}, nil) == nil }, watchdog/3, pollEvery)
	editor.leave()
}

// A daemon whose project is removed ends.
func TestDaemonEndsWithItsProject(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	pid := s.daemon()
	require.NoError(t, os.RemoveAll(s.root))
	require.Eventually(t, func() bool { return syscall.Kill(pid, 0) != nil }, watchdog/3, pollEvery, "process %d goes on", pid)
	assert.NoDirExists(t, s.root, "and it is not made again")
}

// A hub whose write-ahead log, or its index, is removed confirms nothing that is
// lost, and what it confirmed before is there after a kill.
func TestWriteAheadLogIsRemovedUnderAHub(t *testing.T) {
	t.Parallel()
	for _, end := range []string{"-wal", "-shm"} {
		for _, how := range []string{"removed", "replaced"} {
			t.Run(end+" "+how, func(t *testing.T) {
				t.Parallel()
				s, editor := newEditorSite(t)
				hub := hubOf(t, editor)
				confirmed := []launched{editor.launch("quiet one", "")}
				editor.awaitEnd(confirmed[0].SessionID)

				file := filepath.Join(s.state(), "duet.db"+end)
				require.NoError(t, os.Remove(file))
				if how == "replaced" {
					require.NoError(t, os.WriteFile(file, nil, 0o600))
				}
				s.requireNotOf(hub, editor.try("launchSession", object{"query": "quiet two"}, nil))
				for deadline := time.Now().Add(watchdog / 3); time.Now().Before(deadline) && len(confirmed) < 10; {
					var begun launched
					if editor.try("launchSession", object{"query": "quiet three"}, &begun) == nil {
						confirmed = append(confirmed, begun)
					}
				}
				require.Len(t, confirmed, 10, "there is a hub again")
				editor.crash()

				next := s.start()
				for _, run := range confirmed {
					assert.NoError(t, next.try("getSessionState", object{"session_id": run.SessionID}, nil), "%s was confirmed", run.SessionID)
				}
				next.leave()
			})
		}
	}
}

// What keeps the hub from being opened can be mended while the editor's process
// runs.
func TestWhatIsMendedWorks(t *testing.T) {
	t.Parallel()
	for name, wrong := range map[string]struct {
		says          string
		spoil, mended func(s *site) error
	}{
		"a mistake in the configuration": {
			says: ".duet.toml:1",
			spoil: func(s *site) error {
				return os.WriteFile(filepath.Join(s.root, ".duet.toml"), []byte("hub = \n"), 0o600)
			},
			mended: func(s *site) error { return os.WriteFile(filepath.Join(s.root, ".duet.toml"), nil, 0o600) },
		},
		"no place for the state": {
			says: "is no directory",
			spoil: func(s *site) error {
				return errors.Join(os.MkdirAll(filepath.Dir(s.state()), 0o700), os.WriteFile(s.state(), nil, 0o600))
			},
			mended: func(s *site) error { return os.Remove(s.state()) },
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t)
			require.NoError(t, wrong.spoil(s))
			c := s.start()
			require.ErrorContains(t, c.try("listSessions", object{}, nil), wrong.says)
			c.requireCore()
			var health struct{ Issues []string }
			c.call("health", object{}, &health)
			assert.Contains(t, strings.Join(health.Issues, "\n"), wrong.says)

			require.NoError(t, wrong.mended(s))
			require.Eventually(t, func() bool {
				return c.try("listSessions", object{}, nil) == nil
			}, watchdog/3, pollEvery, "it works again")
			c.subscribe()
			c.runs("quiet")
			health.Issues = nil
			c.call("health", object{}, &health)
			assert.Empty(t, health.Issues)

			// And it is the hub for others.
			second := s.open()
			assert.Equal(t, hubOf(t, c), hubOf(t, second))
			second.leave()
			c.leave()
		})
	}
}

// However a hub ends, a client that follows tasks learns once how each has ended,
// also who came to another hub then.
func TestEndOfTasksIsToldWhenTheHubEnds(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(t *testing.T, hub int, other *client){
		"SIGKILL": func(t *testing.T, hub int, _ *client) { require.NoError(t, syscall.Kill(hub, syscall.SIGKILL)) },
		"SIGTERM": func(t *testing.T, hub int, _ *client) { require.NoError(t, syscall.Kill(hub, syscall.SIGTERM)) },
		"daemon.stop": func(_ *testing.T, _ int, other *client) {
			other.call("daemon.stop", object{"force": true}, nil)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, hub := newEditorSite(t)
			before := hub.launch("quiet permit:1 before", "") // before any client follows tasks
			hub.awaitQuestion(before.SessionID)
			attached := s.start()
			process := hubOf(t, attached)
			require.Equal(t, process, hubOf(t, hub))
			attached.call("task.stats", object{}, nil)
			line := s.lines()
			line.call("task.stats", object{}, nil)
			after, _ := hub.asks("quiet permit:1 after", "")
			attached.awaitNote("event.taskStarted", after.TaskID)

			end(t, process, attached)
			s.awaitRelease(process)                                // until then it refuses what is asked
			for attached.try("task.stats", object{}, nil) != nil { // what needs a hub
			}
			for _, task := range []launched{before, after} {
				attached.awaitNote("event.taskCancelled", task.TaskID)
			}
			again := attached.launch("quiet", "")
			attached.awaitNote("event.taskCompleted", again.TaskID)
			assert.Equal(t, 1, attached.count("event.taskCancelled", before.TaskID), "once")
			assert.Equal(t, 1, attached.count("event.taskCancelled", after.TaskID), "once")
			if name == "daemon.stop" { // a signal leaves less time
				line.requireClosed()
				for _, task := range []launched{before, after} {
					assert.Equal(t, 1, line.count("event.taskCancelled", task.TaskID), "before the connection ended")
				}
			}
			attached.leave()
		})
	}
}
