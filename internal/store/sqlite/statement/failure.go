package statement

import (
	"errors"

	driver "modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/duet-rpc/duet-rpc/internal/store"
	"github.com/duet-rpc/duet-rpc/internal/store/sqlite/schema"
)

// Reason sorts an error of SQLite by what can be done about it: full,
// corrupt, locked or unreadable. A schema that is not ours is altered.
func Reason(err error) string {
	var damaged *DamagedError
	var altered *schema.AlteredError
	switch {
	case errors.As(err, &damaged):
		return "corrupt"
	case errors.As(err, &altered):
		return "altered"
	}
	var e *driver.Error
	if !errors.As(err, &e) {
		return "unreadable"
	}
	switch e.Code() { // https://sqlite.org/rescode.html#ioerr_read
	case sqlite3.SQLITE_IOERR_READ, sqlite3.SQLITE_IOERR_SHORT_READ, sqlite3.SQLITE_IOERR_CORRUPTFS, sqlite3.SQLITE_IOERR_DATA:
		return "corrupt"
	}
	switch e.Code() & 0xff {
	case sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR: // a full disk shows as either
		return "full"
	case sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB:
		return "corrupt"
	case sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED:
		return "locked"
	}
	return "unreadable"
}

// A failure is an error of SQLite that is also one of those of package store.
type failure struct{ kind, err error }

func (f failure) Error() string { return f.err.Error() }

func (f failure) Unwrap() []error { return []error{f.kind, f.err} }

// Failed makes an error of SQLite one that callers can do something about.
func Failed(err error) error {
	if err == nil {
		return nil
	}
	if kind := kinds[Reason(err)]; kind != nil && !errors.Is(err, kind) {
		return failure{kind, err}
	}
	return err
}

// kinds are what package store calls the reasons that it knows.
var kinds = map[string]error{"full": store.ErrFull, "locked": store.ErrLocked, "corrupt": store.ErrDamaged}
