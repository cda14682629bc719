package sqlite

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"unicode/utf8"

	driver "modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/duet-rpc/duet-rpc/internal/store"
)

// preparer is a *sql.DB or a *sql.Conn.
type preparer interface {
	PrepareContext(ctx context.Context, query string) (*sql.Stmt, error)
}

// statements prepares each statement once, checks the values that are read (text is UTF-8, JSON
// is valid), and converts SQLite's errors to those of package store. Its methods may be called
// from any goroutine.
type statements struct {
	on      preparer
	damaged func(error)
	gate    *gate

	mu    sync.Mutex // guards ready
	ready map[string]*sql.Stmt
}

// newStatements makes statements for a connection or a pool. damaged, which may be nil, receives
// the error of each read that failed because of damage, or that found an invalid value. Each read
// waits for gate, which may be nil. Call close to free the statements.
func newStatements(on preparer, damaged func(error), g *gate) *statements {
	if damaged == nil {
		damaged = func(error) {}
	}
	if g == nil {
		g = &gate{}
	}
	return &statements{on: on, damaged: damaged, gate: g, ready: make(map[string]*sql.Stmt)}
}

func (s *statements) get(ctx context.Context, query string) (*sql.Stmt, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if stmt := s.ready[query]; stmt != nil {
		return stmt, nil
	}
	stmt, err := s.on.PrepareContext(ctx, query)
	if err == nil {
		s.ready[query] = stmt
	}
	return stmt, failed(closed(err))
}

// closed converts the errors of a closed database, which have no type in database/sql.
func closed(err error) error {
	if err != nil && (err.Error() == "sql: database is closed" || err.Error() == "sql: statement is closed") {
		return store.ErrClosed
	}
	return err
}

// queryTexts returns the texts of the prepared statements.
func (s *statements) queryTexts() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Sorted(maps.Keys(s.ready))
}

// close frees the statements. With open statements SQLite would keep the connection open, and
// with it the write-ahead log.
func (s *statements) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, stmt := range s.ready {
		stmt.Close()
	}
	clear(s.ready)
}

func (s *statements) query(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	stmt, err := s.get(ctx, query)
	if err != nil {
		return nil, err
	}
	rows, err := stmt.QueryContext(ctx, args...)
	return rows, failed(closed(err))
}

// exec runs a statement that returns no rows.
func (s *statements) exec(ctx context.Context, query string, args ...any) (sql.Result, error) {
	stmt, err := s.get(ctx, query)
	if err != nil {
		return nil, err
	}
	result, err := stmt.ExecContext(ctx, args...)
	if err = failed(err); store.IsDamaged(err) {
		s.damaged(err)
	}
	return result, err
}

// all lists the rows of a query. T is a struct whose fields have tags (see [column]), or the type
// of the only column. With an error it also returns the rows before it.
func all[T any](ctx context.Context, s *statements, query string, args ...any) (list []T, err error) {
	err = s.each(ctx, func(r row) error {
		var one T
		err := r.Scan(&one)
		if err == nil {
			list = append(list, one)
		}
		return err
	}, query, args...)
	return list, err
}

// first returns the first row of a query, or store.ErrNotFound.
func first[T any](ctx context.Context, s *statements, query string, args ...any) (T, error) {
	list, err := all[T](ctx, s, query, args...)
	var none T
	switch {
	case err != nil:
		return none, err
	case len(list) == 0:
		return none, store.ErrNotFound
	}
	return list[0], nil
}

// each calls scan with each row of a query.
func (s *statements) each(ctx context.Context, scan func(row) error, query string, args ...any) error {
	err := s.scanEach(ctx, scan, query, args...)
	if store.IsDamaged(err) {
		s.damaged(err)
	}
	return cmp.Or(err, s.gate.pass(ctx))
}

func (s *statements) scanEach(ctx context.Context, scan func(row) error, query string, args ...any) error {
	rows, err := s.query(ctx, query, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	one := row{rows, s.damaged}
	for rows.Next() {
		if err := scan(one); err != nil {
			if ctx.Err() != nil { // the row itself is valid
				return ctx.Err()
			}
			return err
		}
	}
	return failed(closed(rows.Err()))
}

// A row checks its values while they are scanned: SQLite detects damaged pages, not damaged
// values. Invalid UTF-8 becomes U+FFFD.
type row struct {
	rows    *sql.Rows
	damaged func(error) // called for each damaged value
}

// damagedJSON replaces unreadable JSON.
const damagedJSON = `{"damaged":true}`

var (
	errNoUTF8 = &damagedValueError{errors.New("a text is not UTF-8")}
	errNoJSON = &damagedValueError{errors.New("a value is not JSON")}
)

// Scan copies the columns of the row. A struct whose fields have tags takes as many columns as it
// has.
func (r row) Scan(into ...any) error {
	into = targets(into)
	if err := r.rows.Scan(into...); err != nil {
		return &damagedValueError{err}
	}
	for _, target := range into {
		switch target := target.(type) {
		case *string:
			r.mend(target)
		case **string:
			if *target != nil {
				r.mend(*target)
			}
		case *rawTarget:
			if *target != nil {
				*target = rawTarget(r.mendJSON(string(*target)))
			}
		case *jsonTarget:
			if text := r.mendJSON(target.text); text != "" && text != damagedJSON {
				_ = json.Unmarshal([]byte(text), target.into.Interface()) // members of another type are dropped
			}
		}
	}
	return nil
}

func (r row) mend(text *string) {
	if !utf8.ValidString(*text) {
		*text = strings.ToValidUTF8(*text, "\ufffd")
		r.damaged(errNoUTF8)
	}
}

func (r row) mendJSON(text string) string {
	r.mend(&text)
	if text != "" && !json.Valid([]byte(text)) {
		r.damaged(errNoJSON)
		return damagedJSON
	}
	return text
}

// A damagedValueError reports a value that this program cannot have written. It is a
// [store.ErrDamaged].
type damagedValueError struct{ Err error }

func (e *damagedValueError) Error() string { return e.Err.Error() }

// Unwrap returns store.ErrDamaged and the cause.
func (e *damagedValueError) Unwrap() []error { return []error{store.ErrDamaged, e.Err} }

// reason classifies an error of SQLite by its remedy: full, failing, corrupt, locked, altered or
// unreadable.
func reason(err error) string {
	var damaged *damagedValueError
	var altered *AlteredError
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
	case sqlite3.SQLITE_FULL:
		return "full"
	case sqlite3.SQLITE_IOERR: // also a used-up quota, and a full disk where SQLite maps a file
		return "failing"
	case sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB:
		return "corrupt"
	case sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED:
		return "locked"
	}
	return "unreadable"
}

// A failure is an error of SQLite that is also one of package store.
type failure struct{ kind, err error }

func (f failure) Error() string { return f.err.Error() }

func (f failure) Unwrap() []error { return []error{f.kind, f.err} }

// failed converts an error of SQLite to one that callers can check.
func failed(err error) error {
	if err == nil {
		return nil
	}
	var kind error
	switch reason(err) {
	case "full":
		kind = store.ErrFull
	case "failing":
		kind = store.ErrFailing
	case "locked":
		kind = store.ErrLocked
	case "corrupt":
		kind = store.ErrDamaged
		if e := (*driver.Error)(nil); errors.As(err, &e) { // also SQLITE_CORRUPT, if reading for a virtual table fails
			kind = store.ErrUnread
		}
	}
	if kind != nil && !errors.Is(err, kind) {
		return failure{kind, err}
	}
	return err
}

// A gate is shut between a commit and the announcement of its events, while the state in memory
// is older than the database. Readers wait for the gate after each read, so that their next call
// returns a matching state. They wait only while a commit is running. The zero value is open.
type gate struct{ closed atomic.Pointer[chan struct{}] }

// shut shuts the gate. Only the writer calls shut and open.
func (g *gate) shut() {
	opened := make(chan struct{})
	g.closed.Store(&opened)
}

// open opens the gate, if it is shut.
func (g *gate) open() {
	if opened := g.closed.Swap(nil); opened != nil {
		close(*opened)
	}
}

// pass waits until the gate is open, or ctx ends.
func (g *gate) pass(ctx context.Context) error {
	opened := g.closed.Load()
	if opened == nil {
		return nil
	}
	select {
	case <-*opened:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
