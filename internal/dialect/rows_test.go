package dialect_test

import (
	"bufio"
	"context"
	"database/sql"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/dialect"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/store"
	"github.com/duet-rpc/duet-rpc/internal/store/sqlite"
)

// An oldRow is a row of the log as a program of format 7 wrote it: data is what
// clients were sent.
type oldRow struct {
	Type, Key, Text, Data string
	Thread, Run           int64
}

func oldRows(t *testing.T) (rows []oldRow) {
	t.Helper()
	f, err := os.Open("testdata/format7.jsonl")
	require.NoError(t, err)
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var r oldRow
		require.NoError(t, json.Unmarshal(lines.Bytes(), &r))
		rows = append(rows, r)
	}
	require.NoError(t, lines.Err())
	return rows
}

func openStore(t *testing.T, path string) *sqlite.Store {
	t.Helper()
	s, err := sqlite.Open(context.Background(), path, store.Options{Damaged: func(err error) { assert.NoError(t, err) }})
	require.NoError(t, err)
	t.Cleanup(func() { s.Close() })
	return s
}

func requireSpelledAs(t *testing.T, rows []oldRow, events []domain.Event) {
	t.Helper()
	require.Len(t, events, len(rows))
	for i, e := range events {
		r := rows[i]
		assert.Equal(t, []any{r.Type, r.Thread, r.Run}, []any{dialect.TypeOf(e.Payload.Kind()), e.Thread, e.Run})
		if delta, ok := e.Payload.(domain.MessageDelta); ok {
			assert.Equal(t, []string{r.Key, r.Text}, []string{delta.Key, delta.Text})
			continue
		}
		assert.Equal(t, r.Data, string(dialect.Data(e)), "%s", r.Type)
	}
}

// What was told once is told again byte for byte: of rows that a program of an
// earlier format wrote, and of the same events in rows of today's.
func TestWhatIsKeptIsToldAgainAsItWas(t *testing.T) {
	ctx := context.Background()
	rows := oldRows(t)
	path := filepath.Join(t.TempDir(), "duet.db")
	require.NoError(t, openStore(t, path).Close())
	db, err := sql.Open("sqlite", path)
	require.NoError(t, err)
	orNull := func(text string) any {
		if text == "" {
			return nil
		}
		return text
	}
	for i, r := range rows {
		_, err := db.Exec("INSERT INTO events (seq, at, type, thread, run, key, text, data) VALUES (?, 1, ?, ?, ?, ?, ?, ?)",
			i+1, r.Type, r.Thread, r.Run, orNull(r.Key), orNull(r.Text), orNull(r.Data))
		require.NoError(t, err)
	}
	require.NoError(t, db.Close())

	s := openStore(t, path)
	old, err := s.Events(ctx, 0, len(rows)+1)
	require.NoError(t, err)
	requireSpelledAs(t, rows, old)
	kinds := make(map[domain.EventKind]bool)
	for _, e := range old {
		kinds[e.Payload.Kind()] = true
	}
	assert.Len(t, kinds, 17, "all that are kept")

	require.NoError(t, s.Write(ctx, func(tx store.Tx) error {
		for _, e := range old {
			if _, err := tx.Append(e); err != nil {
				return err
			}
		}
		return nil
	}))
	again, err := s.Events(ctx, int64(len(rows)), len(rows)+1)
	require.NoError(t, err)
	requireSpelledAs(t, rows, again)
}
