package storetest

import (
	"database/sql"
	_ "embed"

	"github.com/stretchr/testify/require"
)

//go:embed downgrade-102.sql
var downgrade102 string

// formats are the older formats of a database, and how a database of the next one gets there.
var formats = []struct {
	format     int
	statements string
}{
	{102, downgrade102},
	{101, "ALTER TABLE runs DROP COLUMN clock_off; PRAGMA user_version = 101"},
	{100, "ALTER TABLE changes DROP COLUMN old_mode; ALTER TABLE changes DROP COLUMN new_mode; PRAGMA user_version = 100"},
}

// Downgrade gives the SQLite database at path, which no program has open, an older format.
func Downgrade(t require.TestingT, path string, format int) {
	db, err := sql.Open("sqlite", "file:"+path)
	require.NoError(t, err)
	defer db.Close()
	for _, f := range formats {
		if f.format >= format {
			_, err = db.Exec(f.statements)
			require.NoError(t, err)
		}
	}
}
