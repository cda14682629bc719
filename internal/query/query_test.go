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

	session := domain.Session{UUID: "session", CWD: "/", Agent: "a"}
	turn := domain.Turn{UUID: "turn", HumanLayerSession: "session_id", HumanLayerRun: "run_id", State: domain.Queued, Agent: "a"}
	change := func(state domain.State, change func(store.Tx) error) {
		require.NoError(t, s.Write(t.Context(), func(tx store.Tx) error {
			turn.State = state
			if err := change(tx); err != nil {
				return err
			}
			_, err := tx.Append(domain.Event{Turn: turn.ID, Session: turn.Session, Payload: domain.TurnStateChanged{To: state}})
			return err
		}))
	}
	change(domain.Queued, func(tx store.Tx) error {
		if err := tx.InsertSession(&session); err != nil {
			return err
		}
		turn.Session = session.ID
		return tx.InsertTurn(&turn)
	})
	known, there := q.Known(turn.ID)
	require.True(t, there)
	assert.Equal(t, domain.Queued, known.State)

	change(domain.Starting, func(tx store.Tx) error { return tx.UpdateTurn(turn) })
	known, there = q.Known(turn.ID)
	require.True(t, there)
	assert.Equal(t, domain.Starting, known.State)

	session.Title = "another"
	require.NoError(t, s.Write(t.Context(), func(tx store.Tx) error {
		q.Changed(tx, turn.ID)
		if err := tx.UpdateSession(session); err != nil {
			return err
		}
		_, err := tx.Append(domain.Event{Turn: turn.ID, Session: turn.Session, Payload: domain.SettingsChanged{Title: &session.Title}})
		return err
	}))
	found, err := q.TurnOf(t.Context(), turn.ID)
	require.NoError(t, err)
	assert.Equal(t, "session_id", found.HumanLayerSession)
	assert.Equal(t, "another", found.Session.Title)
	require.NoError(t, s.Write(t.Context(), func(tx store.Tx) error {
		q.Changed(tx, turn.ID)
		return nil
	}))
	_, there = q.Known(turn.ID)
	assert.False(t, there, "it is read again when it is needed")
	_, err = q.Turn(t.Context(), "nobody")
	var refused *domain.Error
	require.ErrorAs(t, err, &refused)
	assert.Equal(t, domain.KindTurnNotFound, refused.Kind)
}
