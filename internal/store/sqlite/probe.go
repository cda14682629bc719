package sqlite

import (
	"context"
	"database/sql"
	"os"
	"strings"

	"github.com/duet-rpc/duet-rpc/internal/store/sqlite/schema"
	"github.com/duet-rpc/duet-rpc/internal/store/sqlite/statement"
)

// inspect looks whether the database at path could be opened, as far as can be seen
// without reading all of it, and changes nothing. There being none is no error. Its
// errors are those of [Open].
func inspect(ctx context.Context, path string) error {
	if err := checkHeader(path); err != nil {
		return err
	}
	return probe(ctx, path)
}

// probe reads the first rows of every table, so that a database that is
// damaged there is found before it is opened for writing, and is left as it
// is. It is quick, however large the database is, and finds no damage that
// lies deeper: a read that meets that has an error of store.IsDamaged.
func probe(ctx context.Context, path string) error {
	if info, err := os.Stat(path); err != nil || info.Size() == 0 {
		return nil // there is none yet
	}
	if wal, err := os.Stat(path + "-wal"); err == nil && wal.Size() > 0 {
		return nil // a killed process left it; the file alone says little
	}
	// immutable: nothing is made or locked beside the file.
	db, err := sql.Open("sqlite", dsn(path, "mode=ro&immutable=1"))
	if err != nil {
		return &OpenError{path, "unreadable", err}
	}
	defer db.Close()
	return look(ctx, db, path)
}

// look reads the first rows of every table of the database that was at path.
func look(ctx context.Context, db *sql.DB, path string) error {
	fail := func(err error) error { return &OpenError{path, statement.Reason(err), err} }
	var version int
	if err := db.QueryRowContext(ctx, "PRAGMA user_version").Scan(&version); err != nil {
		return fail(err)
	}
	if err := checkVersion(path, version); err != nil {
		return err
	}
	if err := schema.Check(ctx, db, version); err != nil {
		return fail(err)
	}
	rows, err := db.QueryContext(ctx, "SELECT name FROM sqlite_schema WHERE type = 'table' AND rootpage > 0")
	if err != nil {
		return fail(err)
	}
	defer rows.Close()
	var tables []string
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			return fail(err)
		}
		tables = append(tables, name)
	}
	if err := rows.Err(); err != nil {
		return fail(err)
	}
	for _, table := range tables {
		var any int
		err := db.QueryRowContext(ctx, `SELECT count(*) FROM (SELECT 1 FROM "`+strings.ReplaceAll(table, `"`, `""`)+`" LIMIT 1)`).Scan(&any)
		if err != nil {
			return fail(err)
		}
	}
	return nil
}
