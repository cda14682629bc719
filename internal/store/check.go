package store

import (
	"context"
	"database/sql"
	"errors"
	"os"
)

// Check looks whether the database at path can be used, without changing it.
// There being none is no error. Its errors are those of [Open].
func Check(ctx context.Context, path string) error {
	if err := checkHeader(path); err != nil {
		return err
	}
	if _, err := os.Stat(path); errors.Is(err, os.ErrNotExist) {
		return nil
	}
	db, err := sql.Open("sqlite", dsn(path, "_pragma=query_only(1)&_pragma=busy_timeout(1000)"))
	if err != nil {
		return &OpenError{path, "unreadable", err}
	}
	defer db.Close()
	var version int
	if err := db.QueryRowContext(ctx, "PRAGMA user_version").Scan(&version); err != nil {
		return &OpenError{path, reason(err), err}
	}
	if err := checkVersion(path, version); err != nil {
		return err
	}
	if err := checkSchema(ctx, db, version); err != nil {
		return &OpenError{path, reason(err), err}
	}
	var found string
	if err := db.QueryRowContext(ctx, "PRAGMA quick_check(1)").Scan(&found); err != nil {
		return &OpenError{path, reason(err), err}
	}
	if found != "ok" {
		return &OpenError{path, "corrupt", errors.New(found)}
	}
	return nil
}
