package store

import (
	"errors"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

// reason sorts an error of SQLite by what can be done about it: full,
// corrupt or unreadable. A schema that is not ours is altered,
// and another database than the one that was meant is replaced.
func reason(err error) string {
	var altered *AlteredError
	if errors.As(err, &altered) {
		return "altered"
	}
	if errors.Is(err, errReplaced) {
		return "replaced"
	}
	var e *sqlite.Error
	if !errors.As(err, &e) {
		return "unreadable"
	}
	switch e.Code() & 0xff {
	case sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR: // a full disk shows as either
		return "full"
	case sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB:
		return "corrupt"
	}
	return "unreadable"
}

// IsFull reports whether err means that the disk takes no more.
func IsFull(err error) bool { return err != nil && reason(err) == "full" }

// IsCorrupt reports whether err means that the database is damaged.
func IsCorrupt(err error) bool { return err != nil && reason(err) == "corrupt" }
