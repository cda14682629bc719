package sqlite

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"

	"github.com/duet-rpc/duet-rpc/internal/store/sqlite/schema"
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
	if err := schema.Check(ctx, db, version); err != nil {
		return &OpenError{path, reason(err), err}
	}
	var found string
	if err := db.QueryRowContext(ctx, "PRAGMA quick_check(1)").Scan(&found); err != nil {
		return &OpenError{path, reason(err), err}
	}
	if found != "ok" {
		return &OpenError{path, "corrupt", errors.New(found)}
	}
	if version < schema.Latest() {
		return nil // its rows are not read before it is brought up to date
	}
	if err := checkRows(ctx, db); err != nil {
		return &OpenError{path, reason(err), err}
	}
	return nil
}

// checkRows reads the log and all conversations as clients would.
func checkRows(ctx context.Context, db *sql.DB) (damage error) {
	q := newQueries(newStatements(db, func(err error) { damage = err }))
	defer q.s.close()
	const some = 1000
	for after := int64(0); ; {
		events, err := q.Events(ctx, after, some)
		if err != nil || damage != nil {
			return cmp.Or(damage, err)
		}
		for _, e := range events {
			if e.Seq != after+1 && after > 0 {
				return &DamagedError{fmt.Errorf("the log has nothing between %d and %d", after, e.Seq)}
			}
			after = e.Seq
		}
		if len(events) < some {
			break
		}
	}
	for after := int64(0); ; {
		items, err := all(ctx, q.s, scanItem, "SELECT "+itemColumns+" FROM items i WHERE i.id > ? ORDER BY i.id LIMIT ?", after, some)
		if err != nil || damage != nil {
			return cmp.Or(damage, err)
		}
		for _, i := range items {
			if i.ID <= after {
				return &DamagedError{fmt.Errorf("an entry of a conversation has the number %d behind %d", i.ID, after)}
			}
			after = i.ID
		}
		if len(items) < some {
			return nil
		}
	}
}
