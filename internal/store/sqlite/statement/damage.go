package statement

import (
	"database/sql"
	"encoding/json"
	"errors"
	"strings"
	"unicode/utf8"

	"github.com/duet-rpc/duet-rpc/internal/store"
)

// A DamagedError says that what was read cannot be what was written. It is a
// [store.ErrDamaged].
type DamagedError struct{ Err error }

func (e *DamagedError) Error() string { return e.Err.Error() }

// Unwrap is store.ErrDamaged and the cause.
func (e *DamagedError) Unwrap() []error { return []error{store.ErrDamaged, e.Err} }

// SQLite notices damage of its pages, not of what is in them. What is read is
// looked at here, once, so that everybody else can rely on it: a text is UTF-8,
// and JSON is JSON.
var (
	errNoUTF8 = &DamagedError{errors.New("a text is not UTF-8")}
	errNoJSON = &DamagedError{errors.New("a value is not JSON")}
)

// A JSON is a column that holds JSON or nothing. What is damaged in it
// beyond its characters is DamagedJSON instead.
type JSON string

// DamagedJSON stands in the place of JSON that could not be read.
const DamagedJSON = `{"damaged":true}`

// Raw is JSON as it is kept, or nil.
func (t JSON) Raw() json.RawMessage {
	if t == "" {
		return nil
	}
	return json.RawMessage(t)
}

// Intact is Raw for what the program reads itself: where it is damaged there is
// none.
func (t JSON) Intact() json.RawMessage {
	if t == DamagedJSON {
		return nil
	}
	return t.Raw()
}

// A checkedRow is a row of which each column is looked at. Characters that are
// none become U+FFFD.
type checkedRow struct {
	row     *sql.Rows
	damaged func(error) // is called with each damage that is found
}

// Scan is as of [Scanner].
func (c checkedRow) Scan(into ...any) error {
	if err := c.row.Scan(into...); err != nil {
		return &DamagedError{err}
	}
	for _, column := range into {
		switch column := column.(type) {
		case *string:
			c.mend(column)
		case **string:
			if *column != nil {
				c.mend(*column)
			}
		case *JSON:
			c.mendJSON(column)
		case **JSON:
			if *column != nil {
				c.mendJSON(*column)
			}
		}
	}
	return nil
}

func (c checkedRow) mend(text *string) {
	if !utf8.ValidString(*text) {
		*text = strings.ToValidUTF8(*text, "\ufffd")
		c.damaged(errNoUTF8)
	}
}

func (c checkedRow) mendJSON(text *JSON) {
	plain := string(*text)
	c.mend(&plain)
	if *text = JSON(plain); plain != "" && !json.Valid([]byte(plain)) {
		*text = DamagedJSON
		c.damaged(errNoJSON)
	}
}
