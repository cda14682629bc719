package sqlite

import (
	"database/sql"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/store"
	"github.com/duet-rpc/duet-rpc/internal/store/storetest"
)

func TestInvalidLogRowIsUnreadable(t *testing.T) {
	path := filepath.Join(t.TempDir(), "duet.db")
	require.NoError(t, openAt(t, path).Close())
	db, err := sql.Open("sqlite", path)
	require.NoError(t, err)
	rows := [][2]string{
		{"never heard of", "{}"},
		{"turn.state", "{"},
		{"turn.state", `{"payload":7}`},
		{"plan", `{"entries":7}`},
		{"usage", ""},
		{"terminal.output", `{"payload":{}}`},
		{"turn.plan", `{"payload":{"entries":[]}}`},
	}
	for i, r := range rows {
		_, err := db.Exec("INSERT INTO events (seq, at, type, session, turn, data) VALUES (?, 1, ?, 1, 1, ?)", i+1, r[0], r[1])
		require.NoError(t, err)
	}
	require.NoError(t, db.Close())

	noted := 0
	s, err := Open(ctx, path, store.Options{Damaged: func(err error) { assert.True(t, store.IsDamaged(err)); noted++ }})
	require.NoError(t, err)
	defer s.Close()
	events := storetest.AllEvents(t, s)
	storetest.RequireGapless(t, events, len(rows))
	last := len(rows) - 1
	for i, e := range events[:last] {
		assert.True(t, e.Unreadable(), "%q", rows[i])
		assert.Zero(t, e.Ref)
	}
	assert.Equal(t, domain.PlanChanged{Entries: []domain.PlanEntry{}}, events[last].Payload)
	assert.Equal(t, last, noted, "each is noted")
}

func TestUnstoredPayloadsCannotBeAppended(t *testing.T) {
	s := openNew(t)
	err := s.Write(ctx, func(tx store.Tx) error {
		_, err := tx.Append(domain.Event{Payload: domain.Lagged{From: 1, To: 2}})
		return err
	})
	assert.ErrorContains(t, err, "Lagged is not kept in the log")
	storetest.RequireGapless(t, storetest.AllEvents(t, s), 0)
}
