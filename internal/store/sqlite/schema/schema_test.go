package schema

import (
	"database/sql"
	"path/filepath"
	"slices"
	"testing"

	"github.com/duet-rpc/duet-rpc/internal/testkit"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	_ "modernc.org/sqlite" // the driver
)

// latest.sql is what the migrations make, and a new database is made from it.
func TestLatest(t *testing.T) {
	want, err := migrated(Latest())
	require.NoError(t, err)
	testkit.GoldenBytes(t, "latest.sql", []byte(print(want)))
	assert.Equal(t, want, parse(print(want)))
}

func TestAMigrationIsWholeOrNotAtAll(t *testing.T) {
	db, err := sql.Open("sqlite", filepath.Join(t.TempDir(), "duet.db"))
	require.NoError(t, err)
	defer db.Close()
	conn, err := db.Conn(t.Context())
	require.NoError(t, err)
	defer conn.Close()
	version := func() (n int) {
		require.NoError(t, conn.QueryRowContext(t.Context(), "PRAGMA user_version").Scan(&n))
		return n
	}
	require.NoError(t, Migrate(t.Context(), conn, 0, Latest()))
	require.NoError(t, Check(t.Context(), conn, Latest()))

	longer := append(slices.Clone(migrations), "CREATE TABLE extra (x); INSERT INTO nowhere VALUES (1);")
	require.ErrorContains(t, migrate(t.Context(), conn, longer, Latest()), "migrating from format")
	assert.Equal(t, Latest(), version())
	require.NoError(t, Check(t.Context(), conn, Latest()), "nothing of it is there")

	longer[Latest()] = "CREATE TABLE extra (x);"
	require.NoError(t, migrate(t.Context(), conn, longer, Latest()))
	assert.Equal(t, Latest()+1, version())
	require.ErrorContains(t, Check(t.Context(), conn, Latest()), `table "extra"`)
}
