package sqlite

import (
	"errors"
	"fmt"
	"net/url"

	_ "modernc.org/sqlite" // the driver

	"github.com/duet-rpc/duet-rpc/internal/store/sqlite/schema"
	"github.com/duet-rpc/duet-rpc/internal/store/sqlite/statement"
)

// An OpenError says why a database cannot be used. The file was not changed.
type OpenError struct {
	Path   string
	Reason string // corrupt, newer, altered (then Err is an *AlteredError), locked, full, or unreadable
	Err    error
}

func (e *OpenError) Unwrap() error { return statement.Failed(e.Err) }

func (e *OpenError) Error() string {
	switch e.Reason {
	case "newer":
		return fmt.Sprintf("the database %s was written by a newer duet-rpc (%v); use that version, or move the file away to begin with an empty one", e.Path, e.Err)
	case "locked":
		return fmt.Sprintf("the database %s is in the hands of another process, which does not let go of it: it was stopped, or hangs; end it and try again (%v)", e.Path, e.Err)
	case "corrupt":
		return fmt.Sprintf("the database %s is damaged (%v); it was left as it is: restore it from a backup, try `sqlite3 %s .recover`, or move it away to begin with an empty one", e.Path, e.Err, e.Path)
	case "full":
		return fmt.Sprintf("there is no room for the database %s: the disk is full; free some space (%v)", e.Path, e.Err)
	case "altered":
		return fmt.Sprintf("the database %s was altered (%v), by another program; it was left as it is: restore it from a backup, take out what is named there with sqlite3, or move it away to begin with an empty one", e.Path, e.Err)
	}
	return fmt.Sprintf("the database %s cannot be opened: %v", e.Path, e.Err)
}

// dsn is how the driver opens the database at path, for whatever purpose.
func dsn(path, query string) string {
	if query != "" {
		query = "&" + query
	}
	return (&url.URL{Scheme: "file", Opaque: url.PathEscape(path)}).String() + "?" + schema.Defensive + query
}

// checkHeader looks at the file before SQLite does, so that a file that is
// not ours, or a newer version's, is not touched at all. There being none is no
// error.
func checkHeader(path string) error {
	version, err := fileVersion(path)
	var damaged *damagedError
	switch {
	case errors.As(err, &damaged):
		return &OpenError{path, "corrupt", err}
	case err != nil:
		return &OpenError{path, "unreadable", err}
	}
	return checkVersion(path, version)
}

func checkVersion(path string, version int) error {
	if version > schema.Latest() {
		return &OpenError{path, "newer", fmt.Errorf("its format is %d, this program knows %d", version, schema.Latest())}
	}
	return nil
}
