package query

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/store"
	"github.com/duet-rpc/duet-rpc/internal/store/sqlite"
)

// A session is found whether cached or not, and is never older than its last change.
func TestSessionsInMemoryAreTrue(t *testing.T) {
	var q *Queries
	s, err := sqlite.Opener(filepath.Join(t.TempDir(), "duet.db"))(t.Context(), store.Options{Committed: func(events []domain.Event, now store.Reader) { q.Committed(events, now) }})
	require.NoError(t, err)
	defer s.Close()
	q = New(t.Context(), s)

	thread := domain.Thread{UUID: "thread", CWD: "/", Agent: "a"}
	run := domain.Run{UUID: "run", SessionID: "session", RunID: "run id", State: domain.Queued, Agent: "a"}
	change := func(state domain.State, change func(store.Tx) error) {
		require.NoError(t, s.Write(t.Context(), func(tx store.Tx) error {
			run.State = state
			if err := change(tx); err != nil {
				return err
			}
			_, err := tx.Append(domain.Event{Run: run.ID, Thread: run.Thread, Payload: domain.RunStateChanged{To: state}})
			return err
		}))
	}
	change(domain.Queued, func(tx store.Tx) error {
		if err := tx.InsertThread(&thread); err != nil {
			return err
		}
		run.Thread = thread.ID
		return tx.InsertRun(&run)
	})
	known, there := q.Known(run.ID)
	require.True(t, there)
	assert.Equal(t, domain.Queued, known.State)

	change(domain.Starting, func(tx store.Tx) error { return tx.UpdateRun(run) })
	known, there = q.Known(run.ID)
	require.True(t, there)
	assert.Equal(t, domain.Starting, known.State)

	thread.Title = "another"
	require.NoError(t, s.Write(t.Context(), func(tx store.Tx) error {
		q.Changed(tx, run.ID)
		if err := tx.UpdateThread(thread); err != nil {
			return err
		}
		_, err := tx.Append(domain.Event{Run: run.ID, Thread: run.Thread, Payload: domain.SettingsChanged{Title: &thread.Title}})
		return err
	}))
	found, err := q.SessionOf(t.Context(), run.ID)
	require.NoError(t, err)
	assert.Equal(t, "session", found.SessionID)
	assert.Equal(t, "another", found.Thread.Title)
	require.NoError(t, s.Write(t.Context(), func(tx store.Tx) error {
		q.Changed(tx, run.ID)
		return nil
	}))
	_, there = q.Known(run.ID)
	assert.False(t, there, "it is read again when it is needed")
	_, err = q.Session(t.Context(), "nobody")
	var refused *domain.Error
	require.ErrorAs(t, err, &refused)
	assert.Equal(t, domain.KindRunNotFound, refused.Kind)
}
