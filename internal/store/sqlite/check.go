package sqlite

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"

	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/store/sqlite/schema"
	"github.com/duet-rpc/duet-rpc/internal/store/sqlite/statement"
)

// Check looks whether the database at path can be used, without changing it.
// There being none is no error. Its errors are those of [Open].
func Check(ctx context.Context, path string) error {
	db, version, err := openToRead(ctx, path)
	if db == nil || err != nil {
		return err
	}
	defer db.Close()
	var found string
	if err := db.QueryRowContext(ctx, "PRAGMA quick_check(1)").Scan(&found); err != nil {
		return &OpenError{path, statement.Reason(err), err}
	}
	if found != "ok" {
		return &OpenError{path, "corrupt", errors.New(found)}
	}
	if version < schema.Latest() {
		return nil // its rows are not read before it is brought up to date
	}
	if err := checkRows(ctx, db); err != nil {
		return &OpenError{path, statement.Reason(err), err}
	}
	return nil
}

// openToRead opens the user's own database at path, whoever else uses it, and
// changes nothing. It is nil, without an error, if there is none.
func openToRead(ctx context.Context, path string) (db *sql.DB, version int, err error) {
	if err := checkHeader(path); err != nil {
		return nil, 0, err
	}
	if _, err := os.Stat(path); errors.Is(err, os.ErrNotExist) {
		return nil, 0, nil
	}
	if db, err = sql.Open("sqlite", dsn(path, "_pragma=query_only(1)&_pragma=busy_timeout(1000)")); err != nil {
		return nil, 0, &OpenError{path, "unreadable", err}
	}
	if err = db.QueryRowContext(ctx, "PRAGMA user_version").Scan(&version); err != nil {
		err = &OpenError{path, statement.Reason(err), err}
	} else if err = checkVersion(path, version); err == nil {
		if err = schema.Check(ctx, db, version); err != nil {
			err = &OpenError{path, statement.Reason(err), err}
		}
	}
	if err != nil {
		db.Close()
		return nil, 0, err
	}
	return db, version, nil
}

// Conversations returns how many conversations the database at path has, which is not
// changed: 0 if there is none. Errors are those of [Open].
func Conversations(ctx context.Context, path string) (int, error) {
	db, _, err := openToRead(ctx, path)
	if db == nil || err != nil {
		return 0, err
	}
	defer db.Close()
	var n int
	if err := db.QueryRowContext(ctx, "SELECT count(*) FROM threads").Scan(&n); err != nil {
		return 0, &OpenError{path, statement.Reason(err), err}
	}
	return n, nil
}

// KeyAccesses lists when API keys were asked for, the newest first, in the user's
// own database at path, which is not changed. Errors are those of [Open].
func KeyAccesses(ctx context.Context, path string, limit int) ([]domain.KeyAccess, error) {
	db, _, err := openToRead(ctx, path)
	if db == nil || err != nil {
		return nil, err
	}
	defer db.Close()
	q := newQueries(statement.New(db, nil, nil))
	defer q.s.Close()
	list, err := q.KeyAccesses(ctx, limit)
	if err != nil {
		return nil, &OpenError{path, statement.Reason(err), err}
	}
	return list, nil
}

// checkRows reads the log and all conversations as clients would.
func checkRows(ctx context.Context, db *sql.DB) (damage error) {
	q := newQueries(statement.New(db, func(err error) { damage = err }, nil))
	defer q.s.Close()
	const some = 1000
	for after := int64(0); ; {
		events, err := q.Events(ctx, after, some)
		if err != nil || damage != nil {
			return cmp.Or(damage, err)
		}
		for _, e := range events {
			if e.Seq != after+1 && after > 0 {
				return &statement.DamagedError{Err: fmt.Errorf("the log has nothing between %d and %d", after, e.Seq)}
			}
			after = e.Seq
		}
		if len(events) < some {
			break
		}
	}
	for after := int64(0); ; {
		items, err := statement.All(ctx, q.s, scanItem, "SELECT "+itemColumns+" FROM items i WHERE i.id > ? ORDER BY i.id LIMIT ?", after, some)
		if err != nil || damage != nil {
			return cmp.Or(damage, err)
		}
		for _, i := range items {
			if i.ID <= after {
				return &statement.DamagedError{Err: fmt.Errorf("an entry of a conversation has the number %d behind %d", i.ID, after)}
			}
			after = i.ID
		}
		if len(items) < some {
			return nil
		}
	}
}
