package config_test

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/config"
	"github.com/duet-rpc/duet-rpc/internal/domain"
)

// live returns the world's configuration, and counts the reads.
func (w *world) live(reads *int) *config.Live {
	w.t.Helper()
	l, err := config.NewLive(w.sources(), func(restricted bool) (*config.Config, error) {
		*reads++
		s := w.sources()
		s.Restricted = restricted
		return config.Load(s)
	})
	require.NoError(w.t, err)
	return l
}

func TestLiveFollowsItsFiles(t *testing.T) {
	w := newWorld(t)
	w.install("claude-agent-acp")
	reads := 0
	l := w.live(&reads)
	assert.Empty(t, l.Rules())

	const text = "default_agent = 'mine'\n[agents.mine]\ncommand = ['mine']\n[keys.a]\nenv = 'A'\n[[rules]]\neffect = 'allow'\ntool = 'Bash'\n[[rules]]\neffect = 'deny'\ntool = 'Read'\n"
	w.write(w.project, text)
	before := l.Generation()
	a, err := l.Resolve("")
	require.NoError(t, err)
	assert.Equal(t, "claude", a.Name)
	assert.Len(t, l.Rules(), 1, "the deny rule")
	assert.Empty(t, keysOf(l))
	assert.True(t, l.Revoked())
	w.trusted()
	assert.NotEqual(t, before, l.Generation())
	a, err = l.Resolve("")
	require.NoError(t, err)
	assert.Equal(t, "mine", a.Name)
	assert.Len(t, l.Rules(), 2)
	assert.Len(t, keysOf(l), 1)
	assert.False(t, l.Revoked())
	restricted, err := l.Current(true)
	require.NoError(t, err)
	assert.Empty(t, restricted.Keys)

	// An edit waits for trust, and does not revoke it.
	w.write(w.project, text+"#")
	assert.Len(t, l.Rules(), 1)
	assert.Empty(t, keysOf(l))
	assert.False(t, l.Revoked())

	// An unreadable file denies as before, and allows nothing.
	w.write(w.project, text)
	assert.Len(t, l.Rules(), 2)
	w.write(w.user, "default_agent = \n")
	assert.Equal(t, []config.Rule{{Effect: "deny", Tool: "Read", Source: "project", File: ".duet.toml", Line: 9}}, l.Rules())
	assert.Empty(t, keysOf(l))
	_, err = l.Resolve("")
	var wrong *config.Error
	require.ErrorAs(t, err, &wrong)
	require.NoError(t, os.Remove(w.user))
	assert.Len(t, l.Rules(), 2)

	require.NoError(t, w.trust.Revoke(w.project))
	assert.True(t, l.Revoked())
	assert.Len(t, l.Rules(), 1)
	require.NoError(t, os.Remove(w.project))
	assert.Empty(t, l.Rules())
}

// Unchanged files are not read again, however many calls there are.
func TestLiveReadsNothingTwice(t *testing.T) {
	w := newWorld(t)
	old := w.project
	w.write(old, "[limits]\nmax_turns = 1\n")
	past := mustStat(t, old).ModTime().Add(-1e9)
	require.NoError(t, os.Chtimes(old, past, past))
	reads := 0
	l := w.live(&reads)
	var group sync.WaitGroup
	for range 20 {
		group.Go(func() {
			_, err := l.Current(false)
			assert.NoError(t, err)
			l.Rules()
		})
	}
	group.Wait()
	assert.Equal(t, 1, reads)
	generation := l.Generation()
	assert.Equal(t, generation, l.Generation())

	// The new file has the same size and time, but is another file.
	other := filepath.Join(filepath.Dir(old), "other")
	w.write(other, "[limits]\nmax_turns = 2\n")
	require.NoError(t, os.Chtimes(other, past, past))
	require.NoError(t, os.Rename(other, old))
	c, err := l.Current(false)
	require.NoError(t, err)
	assert.Equal(t, 2, c.Limits.MaxTurns)
}

func TestLiveThatNeverCouldBeRead(t *testing.T) {
	w := newWorld(t)
	l, err := config.NewLive(w.sources(), func(bool) (*config.Config, error) { return nil, errors.New("no") })
	require.NoError(t, err)
	_, err = l.Resolve("")
	require.EqualError(t, err, "no")
	assert.Empty(t, l.Rules())
	assert.Empty(t, keysOf(l))
}

// A disk that fails once does not make the configuration unusable until its file is changed.
func TestAFailedReadIsTriedAgain(t *testing.T) {
	for name, failure := range map[string]error{
		"a file of the configuration": &config.Error{Problems: []config.Problem{{Message: "it cannot be read"}}, Unread: true},
		"the trusted files":           &os.PathError{Op: "read", Path: "trust", Err: os.ErrPermission},
	} {
		w := newWorld(t)
		w.write(w.user, "[limits]\nmax_turns = 1\n")
		past := mustStat(t, w.user).ModTime().Add(-time.Hour)
		require.NoError(t, os.Chtimes(w.user, past, past))
		reads := 0
		l, err := config.NewLive(w.sources(), func(bool) (*config.Config, error) {
			if reads++; reads == 1 {
				return nil, failure
			}
			return config.Load(w.sources())
		})
		require.NoError(t, err)
		_, err = l.Current(false)
		require.ErrorIs(t, err, failure, name)
		c, err := l.Current(false)
		require.NoError(t, err, name)
		assert.Equal(t, 1, c.Limits.MaxTurns, name)
		l.Rules()
		assert.Equal(t, 2, reads, name)
	}
}

func mustStat(t *testing.T, path string) os.FileInfo {
	t.Helper()
	info, err := os.Stat(path)
	require.NoError(t, err)
	return info
}

// Every change that a look would find is announced.
func TestLiveTellsOfChanges(t *testing.T) {
	const text = "[[rules]]\neffect = 'deny'\ntool = 'Read'\n"
	for name, change := range map[string]func(*world){
		"the project's file":  func(w *world) { w.write(w.project, text) },
		"the user's file":     func(w *world) { w.write(w.user, text) },
		"that one is trusted": func(w *world) { w.trusted() },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.write(w.project, "#")
			reads := 0
			l := w.live(&reads)
			changed, stop := l.Watch()
			defer stop()
			if changed == nil {
				t.Skip("nothing tells of changes on this system")
			}
			before := l.Generation()
			change(w)
			select {
			case <-changed:
			case <-time.After(time.Minute):
				require.Fail(t, "no change is reported")
			}
			assert.NotEqual(t, before, l.Generation())
		})
	}
}

// Agents make thousands of tool calls a second, and each asks for the budget: it does not look at the
// files each time. A change holds within a quarter of a second.
func TestBudgetIsSoonCurrent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		reads := 0
		l := w.live(&reads)
		w.write(w.user, "[budget.turn]\nrounds = 3\n")
		assert.Equal(t, 3, *l.Budget().Turn.Rounds)
		w.write(w.user, "[budget.turn]\nrounds = 40\n")
		time.Sleep(249 * time.Millisecond)
		assert.Equal(t, 3, *l.Budget().Turn.Rounds)
		time.Sleep(time.Millisecond)
		assert.Equal(t, 40, *l.Budget().Turn.Rounds)
		w.write(w.user, "[budget.turn]\nrounds = 500\n")
		_, err := l.Current(false)
		require.NoError(t, err)
		assert.Equal(t, 500, *l.Budget().Turn.Rounds, "a reader of the whole configuration reads the files")
	})
}

// keysOf returns the keys that a turn gets.
func keysOf(l *config.Live) map[string]config.Key {
	c := config.Configuration{Agents: l, Current: l.Current, Logger: slog.New(slog.DiscardHandler)}
	return c.KeysOf(domain.Turn{})
}
