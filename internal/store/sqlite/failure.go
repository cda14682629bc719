package sqlite

import (
	"errors"
	"fmt"

	driver "modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/duet-rpc/duet-rpc/internal/store"
	"github.com/duet-rpc/duet-rpc/internal/store/sqlite/dbfile"
	"github.com/duet-rpc/duet-rpc/internal/store/sqlite/schema"
)

// reason sorts an error of SQLite by what can be done about it: full,
// corrupt, locked or unreadable. A schema that is not ours is altered, and
// another database than the one that was meant is replaced.
func reason(err error) string {
	var damaged *DamagedError
	var altered *schema.AlteredError
	switch {
	case errors.As(err, &damaged):
		return "corrupt"
	case errors.As(err, &altered):
		return "altered"
	}
	if errors.Is(err, errReplaced) {
		return "replaced"
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

func (f failure) Error() string   { return f.err.Error() }
func (f failure) Unwrap() []error { return []error{f.kind, f.err} }

// failed makes an error of SQLite one that callers can do something about.
func failed(err error) error {
	if err == nil {
		return nil
	}
	if kind := kinds[reason(err)]; kind != nil && !errors.Is(err, kind) {
		return failure{kind, err}
	}
	return err
}

// kinds are what package store calls the reasons that it knows.
var kinds = map[string]error{"full": store.ErrFull, "locked": store.ErrLocked, "corrupt": store.ErrDamaged}

// Locked is err with the process that has the database, where that is why. This
// process must have closed it.
func Locked(path string, err error) error {
	if !store.IsLocked(err) {
		return err
	}
	var known *OpenError
	if errors.As(err, &known) {
		err = known.Err
	}
	if pid := dbfile.Blocker(path); pid != 0 {
		err = fmt.Errorf("it is process %d, which `kill -9 %d` ends: %w", pid, pid, err)
	}
	return &OpenError{path, "locked", err}
}
