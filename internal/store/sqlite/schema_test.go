package sqlite

import (
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/store"
	"github.com/duet-rpc/duet-rpc/internal/store/storetest"
	"github.com/duet-rpc/duet-rpc/internal/testkit"
)

func execute(t *testing.T, path, statements string) {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+path)
	require.NoError(t, err)
	defer db.Close()
	_, err = db.Exec(statements)
	require.NoError(t, err)
}

// The headings of schema.sql name every object that SQLite creates from it.
func TestSchema(t *testing.T) {
	db, err := sql.Open("sqlite", filepath.Join(t.TempDir(), "duet.db"))
	require.NoError(t, err)
	defer db.Close()
	conn, err := db.Conn(ctx)
	require.NoError(t, err)
	defer conn.Close()
	require.NoError(t, createSchema(ctx, conn))
	made, err := objects(ctx, conn)
	require.NoError(t, err)
	var text strings.Builder
	for i, o := range made {
		if i > 0 {
			text.WriteString("\n")
		}
		text.WriteString(heading)
		if strings.HasPrefix(o.Name, "sqlite_") || strings.HasPrefix(o.Name, "items_text_") {
			text.WriteString(implicit)
		}
		fmt.Fprintf(&text, "%s %s %s\n", o.Type, o.Name, o.table)
		if o.sql != "" {
			text.WriteString(o.sql + ";\n")
		}
	}
	testkit.GoldenBytes(t, "schema.sql", []byte(text.String()))
	require.NoError(t, checkSchema(ctx, conn, format))
}

// A foreign or missing schema element is detected before any table is read.
func TestForeignSchema(t *testing.T) {
	for name, c := range map[string]struct{ change, says string }{
		"a trigger":               {"CREATE TRIGGER x AFTER INSERT ON turns BEGIN DELETE FROM sessions; END", `trigger "x"`},
		"a view":                  {"CREATE VIEW x AS SELECT 1", `view "x"`},
		"a view instead of ours":  {"DROP TABLE rules; CREATE VIEW rules AS SELECT 1 AS id, 0 AS session, 'allow' AS effect, '*' AS tool, '' AS command, 1 AS created", `view "rules"`},
		"a virtual table":         {"CREATE VIRTUAL TABLE x USING fts5 (y)", `table "x"`},
		"an index":                {"CREATE INDEX x ON turns (abs(id))", `index "x"`},
		"a column":                {"ALTER TABLE turns ADD COLUMN x DEFAULT (1)", `table "turns"`},
		"a table that is missing": {"DROP TABLE rules", `missing: table "rules"`},
		"many":                    {"CREATE TABLE a(x);CREATE TABLE b(x);CREATE TABLE c(x);CREATE TABLE d(x);CREATE TABLE e(x);CREATE TABLE f(x)", "1 more"},
	} {
		t.Run(name, func(t *testing.T) {
			path, _ := database(t)
			execute(t, path, c.change)
			content, err := os.ReadFile(path)
			require.NoError(t, err)
			_, openErr := Open(ctx, path, store.Options{})
			for _, err := range []error{openErr, Check(ctx, path), inspect(ctx, path)} {
				var failed *OpenError
				require.ErrorAs(t, err, &failed)
				assert.Equal(t, "altered", failed.Reason)
				require.ErrorAs(t, err, new(*AlteredError))
				assert.Contains(t, err.Error(), c.says)
				assert.Contains(t, err.Error(), "move it away")
			}
			now, err := os.ReadFile(path)
			require.NoError(t, err)
			assert.Equal(t, content, now, "byte for byte")
		})
	}
}

// A log beside a database can change its schema, too.
func TestSchemaInLog(t *testing.T) {
	path, _ := database(t)
	db, err := sql.Open("sqlite", "file:"+path)
	require.NoError(t, err)
	defer db.Close()
	_, err = db.Exec("CREATE TRIGGER x AFTER INSERT ON turns BEGIN DELETE FROM sessions; END")
	require.NoError(t, err)
	left := filepath.Join(t.TempDir(), "duet.db")
	before := make(map[string][]byte)
	for _, suffix := range []string{"", "-wal"} { // the state after a kill
		before[suffix], err = os.ReadFile(path + suffix)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(left+suffix, before[suffix], 0o600))
	}
	_, err = Open(ctx, left, store.Options{})
	require.ErrorAs(t, err, new(*AlteredError))
}

func TestDirectoriesMove(t *testing.T) {
	s := openNew(t)
	want := map[string]string{
		"/a/p": "/b/q", "/a/p/": "/b/q/", "/a/p/x": "/b/q/x", "/a/p2": "/a/p2", "/a": "/a", "/a/P/x": "/a/P/x", "/a/p/%_ä": "/b/q/%_ä",
	}
	ids := make(map[string]int64)
	storetest.Write(t, s, func(tx store.Tx) error {
		for dir := range want {
			session := domain.Session{UUID: dir, CWD: dir}
			if err := tx.InsertSession(&session); err != nil {
				return err
			}
			ids[dir] = session.ID
		}
		return tx.MoveDirectories("/a/p", "/b/q")
	})
	for was, now := range want {
		session, err := s.Session(ctx, ids[was])
		require.NoError(t, err)
		assert.Equal(t, now, session.CWD, was)
	}
}

func TestChangedFilesMoveWithTheirProject(t *testing.T) {
	s := openNew(t)
	const turn = 7
	storetest.Write(t, s, func(tx store.Tx) error {
		for _, path := range []string{"/a/p/x", "/a/p2/x", "y", "/a/p/both", "/b/q/both"} {
			if err := tx.PutChange(domain.Change{Turn: turn, Path: path}); err != nil {
				return err
			}
		}
		return tx.MoveDirectories("/a/p", "/b/q")
	})
	changes, err := s.Changes(ctx, turn)
	require.NoError(t, err)
	var paths []string
	for _, c := range changes {
		paths = append(paths, c.Path)
	}
	assert.ElementsMatch(t, []string{"/b/q/x", "/a/p2/x", "y", "/a/p/both", "/b/q/both"}, paths)
}

// A database of each format since the first release is upgraded, and keeps its rows.
func TestUpgrade(t *testing.T) {
	for former := oldest; former < format; former++ {
		t.Run(fmt.Sprint(former), func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "duet.db")
			s := openAt(t, path)
			one := storetest.NewSession(t, s, "")
			first := storetest.AddTurn(t, s, one.ID, domain.Completed)
			storetest.AddTurn(t, s, storetest.NewSession(t, s, "").ID, domain.Completed)
			third := storetest.AddTurn(t, s, one.ID, domain.Queued)
			appended := storetest.AppendPayloads(t, s, third)
			item := domain.Item{Session: one.ID, Turn: first.ID, Kind: "message", Content: "findable words"}
			storetest.Write(t, s, func(tx store.Tx) error {
				one.Settings.ModeTurn = first.ID
				return errors.Join(tx.UpdateSession(one), tx.PutChange(domain.Change{Turn: first.ID, Path: "/p"}), tx.InsertItem(&item),
					tx.PutRule(domain.Rule{Session: one.ID, Effect: "allow", Tool: "Edit"}))
			})
			first, third = stored(t, s, first), stored(t, s, third)
			require.NoError(t, s.Close())
			storetest.Downgrade(t, path, former)
			require.NoError(t, Check(ctx, path))
			sessions, err := CountSessions(ctx, path)
			require.NoError(t, err)
			assert.Equal(t, 2, sessions)
			_, err = KeyAccesses(ctx, path, 1)
			require.ErrorContains(t, err, "daemon start", "what to do")

			s = openAt(t, path)
			for _, want := range []domain.Turn{first, third} {
				assert.Equal(t, want, stored(t, s, want))
			}
			assert.EqualValues(t, 1, first.Number)
			assert.EqualValues(t, 2, third.Number)
			assert.EqualValues(t, 3, storetest.AddTurn(t, s, one.ID, domain.Queued).Number, "the numbers go on")
			found, err := s.Session(ctx, one.ID)
			require.NoError(t, err)
			assert.Equal(t, first.ID, found.Settings.ModeTurn)
			assert.Equal(t, appended, storetest.AllEvents(t, s), "the log")
			changes, err := s.Changes(ctx, first.ID)
			require.NoError(t, err)
			require.Len(t, changes, 1)
			rules, err := s.Rules(ctx, one.ID)
			require.NoError(t, err)
			require.Len(t, rules, 1)
			require.NoError(t, s.Close())
			assert.Equal(t, format, userVersion(t, path))
			require.NoError(t, Check(ctx, path), "the schema is that of a new database")
		})
	}
}

func stored(t *testing.T, s *Store, turn domain.Turn) domain.Turn {
	t.Helper()
	turn, err := s.Turn(ctx, turn.ID)
	require.NoError(t, err)
	return turn
}

// An upgrade that fails leaves the database as it was.
func TestFailedUpgradeChangesNothing(t *testing.T) {
	path, _ := database(t)
	storetest.Downgrade(t, path, words-1)
	db, err := sql.Open("sqlite", dsn(path, ""))
	require.NoError(t, err)
	defer db.Close()
	conn, err := db.Conn(ctx)
	require.NoError(t, err)
	defer conn.Close()
	_, err = conn.ExecContext(ctx, "DROP INDEX runs_created; CREATE TABLE turns (x)") // in the way
	require.NoError(t, err)
	require.Error(t, upgradeSchema(ctx, conn, words-1))
	_, err = conn.ExecContext(ctx, "DROP TABLE turns; CREATE INDEX runs_created ON runs (created)")
	require.NoError(t, err)
	require.NoError(t, checkSchema(ctx, conn, words-1))
	assert.Equal(t, words-1, userVersion(t, path))
}
