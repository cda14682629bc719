// Package sqlite stores sessions, turns, approvals and the log in an SQLite database. It does
// not validate changes: package hub decides which change of a turn is allowed.
//
// A value's columns are named by the tags of its fields in package domain (columns.go).
// schema.sql is the schema.
//
// One goroutine writes. Changes that arrive while it is busy are committed together. A change
// made with [Store.Write] survives a power cut when Write returns; a change queued with
// [Store.Enqueue] survives any kill of the process. An event gets its number in the
// transaction that appends it, so the log has no gaps, and is announced after the commit, in
// order. Readers have connections of their own.
package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"

	_ "modernc.org/sqlite"

	"github.com/duet-rpc/duet-rpc/internal/durable"
	"github.com/duet-rpc/duet-rpc/internal/store"
)

// A Store is an open database. Its methods may be called from any goroutine.
type Store struct {
	queries
	path    string
	readers *sql.DB
	writers *sql.DB
	writer  *writer
	places  *places
	gate    gate // readers wait for it
	ended   sync.WaitGroup
}

// Open opens the database at path, and creates it if necessary. It leaves a database that it cannot
// open unchanged, and returns an *OpenError. Only one process may have it open for writing: see
// package project's lock.
func Open(ctx context.Context, path string, opts store.Options) (*Store, error) {
	s, err := openOnce(ctx, path, opts)
	if isCorrupt(err) {
		if err := unreadable(path); err != nil {
			return nil, err
		}
		return openOnce(ctx, path, opts)
	}
	return s, err
}

func isCorrupt(err error) bool {
	var failed *OpenError
	return errors.As(err, &failed) && failed.Reason == "corrupt"
}

// unreadable returns an *OpenError if the disk does not let the database be read, and nil if it does.
// SQLite reports a failed read as damage of the database.
func unreadable(path string) error {
	for _, name := range []string{path, path + "-wal"} {
		f, err := os.Open(name)
		if err == nil {
			_, err = io.Copy(io.Discard, f)
			f.Close()
		}
		if durable.Unknown(err) {
			return &OpenError{path, "unreadable", err}
		}
	}
	return nil
}

func openOnce(ctx context.Context, path string, opts store.Options) (*Store, error) {
	if err := inspect(ctx, path); err != nil {
		return nil, err
	}
	s := &Store{path: path}
	var err error
	if s.writers, err = sql.Open("sqlite", dsn(path, "_txlock=immediate&_pragma=busy_timeout(2500)")); err != nil {
		return nil, &OpenError{path, "unreadable", err}
	}
	s.writers.SetMaxOpenConns(1)
	if err := s.prepare(ctx); err != nil {
		s.writers.Close()
		return nil, err
	}
	if s.readers, err = sql.Open(
		"sqlite", dsn(path, "_pragma=busy_timeout(5000)&_pragma=query_only(1)&_pragma=cache_size(-1000)"),
	); err != nil {
		s.writers.Close()
		return nil, &OpenError{path, "unreadable", err}
	}
	s.readers.SetMaxOpenConns(4)
	s.readers.SetMaxIdleConns(2) // which have the statements of the next prompt
	s.queries = queries{newStatements(s.readers, opts.Damaged, &s.gate)}
	if s.writer, err = newWriter(ctx, s.writers, &s.gate, opts); err == nil {
		s.places = s.writer.tx.places
		err = s.writer.identify(path, opts.Valid)
	}
	if err != nil {
		s.readers.Close()
		s.writers.Close()
		return nil, &OpenError{path, reason(err), err}
	}
	checkpoints, err := newCheckpointer(path, s.writer, s.readers)
	if err != nil {
		s.readers.Close()
		s.writers.Close()
		return nil, &OpenError{path, "unreadable", err}
	}
	s.ended.Go(s.writer.loop)
	s.ended.Go(checkpoints.loop)
	s.ended.Go(s.indexLoop)
	s.writer.indexDue <- struct{}{} // items that the last process left
	return s, nil
}

// Opener opens the database at path as a [store.Store]. See [Open].
func Opener(path string) func(context.Context, store.Options) (store.Store, error) {
	return func(ctx context.Context, opts store.Options) (store.Store, error) {
		s, err := Open(ctx, path, opts)
		if err != nil {
			return nil, err
		}
		return s, nil
	}
}

// prepare sets database-wide settings, creates the tables of an empty database, and upgrades one of
// an older format.
func (s *Store) prepare(ctx context.Context) error {
	fail := func(err error) error { return &OpenError{s.path, reason(err), err} }
	conn, err := s.writers.Conn(ctx)
	if err != nil {
		return fail(err)
	}
	defer conn.Close()
	var version int
	if err := conn.QueryRowContext(ctx, "PRAGMA user_version").Scan(&version); err != nil {
		return fail(err)
	}
	if err := checkVersion(s.path, version); err != nil {
		return err
	}
	// First of all, with the changes that a log makes to the file.
	if err := checkSchema(ctx, conn, version); err != nil {
		return fail(err)
	}
	var mode string
	if err := conn.QueryRowContext(ctx, "PRAGMA journal_mode = WAL").Scan(&mode); err != nil {
		return fail(err)
	}
	switch {
	case version == 0:
		err = createSchema(ctx, conn)
	case version < format:
		err = upgradeSchema(ctx, conn, version)
	}
	if err != nil {
		return fail(err)
	}
	if err := os.Chmod(s.path, 0o600); err != nil {
		return fail(err)
	}
	return nil
}

// Path returns the path of the database.
func (s *Store) Path() string { return s.path }

// Close commits queued changes, and closes the database.
func (s *Store) Close() error {
	s.indexRest()
	s.writer.stop()
	s.ended.Wait()
	s.queries.s.close()
	return errors.Join(s.readers.Close(), s.writers.Close())
}

// FreeBytes returns the free space of the database's disk in bytes, or a negative number if that
// is unknown.
func (s *Store) FreeBytes() int64 { return freeBytes(filepath.Dir(s.path)) }

// An OpenError reports why a database cannot be used. The file was not changed.
type OpenError struct {
	Path   string
	Reason string // corrupt, newer, older, former (the daemon upgrades it), altered (then Err is an *AlteredError), locked, full, failing, or unreadable
	Err    error
}

func (e *OpenError) Unwrap() error { return failed(e.Err) }

func (e *OpenError) Error() string {
	switch e.Reason {
	case "newer":
		return fmt.Sprintf("the database %s was written by a newer duet-rpc (%v); use that version, or move the file away to begin with an "+
			"empty one", e.Path, e.Err)
	case "older":
		return fmt.Sprintf("the database %s is from before the first release of duet-rpc (%v); move the file away to begin with an empty "+
			"one", e.Path, e.Err)
	case "former":
		return fmt.Sprintf("the database %s is from an earlier duet-rpc (%v); the daemon upgrades it when it starts: run `duet-rpc daemon "+
			"start`", e.Path, e.Err)
	case "locked":
		return fmt.Sprintf("the database %s is in the hands of another process, which does not let go of it: it was stopped, or hangs; end it "+
			"and try again (%v)", e.Path, e.Err)
	case "corrupt":
		return fmt.Sprintf("the database %s is damaged (%v); it was left as it is: restore it from a backup, try `sqlite3 %s .recover`, or "+
			"move it away to begin with an empty one", e.Path, e.Err, e.Path)
	case "full":
		return fmt.Sprintf("there is no room for the database %s: the disk is full; free some space (%v)", e.Path, e.Err)
	case "failing":
		return fmt.Sprintf("the database %s cannot be written: the disk is full or fails (%v); free some space, or check the disk", e.Path, e.Err)
	case "altered":
		return fmt.Sprintf("the database %s was altered (%v), by another program; it was left as it is: restore it from a backup, take out "+
			"what is named there with sqlite3, or move it away to begin with an empty one", e.Path, e.Err)
	}
	return fmt.Sprintf("the database %s cannot be opened: %v", e.Path, e.Err)
}

// dsn returns the driver's name for the database at path, with query parameters.
func dsn(path, query string) string {
	if query != "" {
		query = "&" + query
	}
	return (&url.URL{Scheme: "file", Opaque: url.PathEscape(path)}).String() + "?" + defensive + query
}

// checkHeader checks the file before SQLite opens it, so that a foreign file or one of a newer
// version stays unchanged. A missing file is no error.
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
	switch {
	case version > format:
		return &OpenError{path, "newer", fmt.Errorf("its format is %d, this program knows %d", version, format)}
	case version != 0 && version < oldest:
		return &OpenError{path, "older", fmt.Errorf("its format is %d, this program knows %d", version, format)}
	}
	return nil
}

// identify records the identity of the database files. A connection must be open.
func (w *writer) identify(path string, valid func() error) error {
	files, err := identifyFile(path)
	if err != nil {
		return err
	}
	lost := func(err error) error {
		if err == nil {
			return nil
		}
		return &store.LostError{Err: err}
	}
	w.log = path + "-wal"
	w.databaseValid = func() error {
		err := files.CheckDatabase()
		if err == nil && valid != nil {
			err = valid()
		}
		return lost(err)
	}
	w.valid = func() error {
		if err := w.databaseValid(); err != nil {
			return err
		}
		return lost(files.CheckLog())
	}
	return nil
}

// rescue copies committed data into the database if only its side files were removed, and reports
// whether the database is complete. The writer's connection still has the log open.
func (w *writer) rescue() bool {
	if w.databaseValid() != nil {
		return false
	}
	var busy, frames, done int
	err := w.conn.QueryRowContext(background, "PRAGMA wal_checkpoint(FULL)").Scan(&busy, &frames, &done)
	return err == nil && busy == 0 && frames == done
}

// Valid returns a [*store.LostError] if writes are lost. It is cheap.
func (s *Store) Valid() error { return s.writer.valid() }

// Locked adds the process that has locked the database to err, if err is about a lock. This
// process must have closed the database.
func Locked(path string, err error) error {
	if !store.IsLocked(err) {
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

// inspect checks whether the database at path can be opened, without reading all of it, and
// changes nothing. A missing database is no error. Its errors are those of [Open].
func inspect(ctx context.Context, path string) error {
	if err := checkHeader(path); err != nil {
		return err
	}
	return probe(ctx, path)
}

// probe reads the first rows of every table, to find damage before the database is opened for
// writing. It changes nothing, and is fast for a database of any size. It does not find deeper
// damage: a later read of damaged data returns an error of store.IsDamaged.
func probe(ctx context.Context, path string) error {
	if info, err := os.Stat(path); err != nil || info.Size() == 0 {
		return nil // no database yet
	}
	if wal, err := os.Stat(path + "-wal"); err == nil && wal.Size() > 0 {
		return nil // left by a killed process; the file without the log says little
	}
	// immutable: SQLite creates and locks no files.
	db, err := sql.Open("sqlite", dsn(path, "mode=ro&immutable=1"))
	if err != nil {
		return &OpenError{path, "unreadable", err}
	}
	defer db.Close()
	return look(ctx, db, path)
}

// look reads the first rows of every table of the database at path.
func look(ctx context.Context, db *sql.DB, path string) error {
	fail := func(err error) error { return &OpenError{path, reason(err), err} }
	var version int
	if err := db.QueryRowContext(ctx, "PRAGMA user_version").Scan(&version); err != nil {
		return fail(err)
	}
	if err := checkVersion(path, version); err != nil {
		return err
	}
	if err := checkSchema(ctx, db, version); err != nil {
		return fail(err)
	}
	rows, err := db.QueryContext(ctx, "SELECT name FROM sqlite_schema WHERE type = 'table' AND rootpage > 0")
	if err != nil {
		return fail(err)
	}
	defer rows.Close()
	var tables []string
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			return fail(err)
		}
		tables = append(tables, name)
	}
	if err := rows.Err(); err != nil {
		return fail(err)
	}
	for _, table := range tables {
		var any int
		err := db.QueryRowContext(ctx, `SELECT count(*) FROM (SELECT 1 FROM "`+strings.ReplaceAll(table, `"`, `""`)+`" LIMIT 1)`).Scan(&any)
		if err != nil {
			return fail(err)
		}
	}
	return nil
}
