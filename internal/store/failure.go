package store

import (
	"errors"
	"fmt"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

// reason sorts an error of SQLite by what can be done about it: full,
// corrupt, locked or unreadable. A schema that is not ours is altered, and
// another database than the one that was meant is replaced.
func reason(err error) string {
	var damaged *DamagedError
	var altered *AlteredError
	switch {
	case errors.As(err, &damaged):
		return "corrupt"
	case errors.As(err, &altered):
		return "altered"
	}
	if errors.Is(err, errReplaced) {
		return "replaced"
	}
	var e *sqlite.Error
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

// IsFull reports whether err means that the disk takes no more.
func IsFull(err error) bool { return err != nil && reason(err) == "full" }

// IsLocked reports whether err means that another process has the database and does
// not let go of it.
func IsLocked(err error) bool { return err != nil && reason(err) == "locked" }

// Locked is err with the process that has the database, where [IsLocked]. This
// process must have closed it.
func Locked(path string, err error) error {
	if !IsLocked(err) {
		return err
	}
	var known *OpenError
	if errors.As(err, &known) {
		err = known.Err
	}
	if pid := blocker(path); pid != 0 {
		err = fmt.Errorf("it is process %d, which `kill -9 %d` ends: %w", pid, pid, err)
	}
	return &OpenError{path, "locked", err}
}

// IsCorrupt reports whether err means that the database is damaged, or cannot be
// read from its disk.
func IsCorrupt(err error) bool { return err != nil && reason(err) == "corrupt" }
