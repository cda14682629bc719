package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"sync"

	"github.com/duet-rpc/duet-rpc/internal/store"
	"github.com/duet-rpc/duet-rpc/internal/store/sqlite/schema"
	"github.com/duet-rpc/duet-rpc/internal/store/sqlite/statement"
)

// A Store is an open database. Its methods may be called from any goroutine.
type Store struct {
	queries
	path    string
	readers *sql.DB
	writers *sql.DB
	writer  *writer
	places  *places
	gate    statement.Gate // of those who read
	ended   sync.WaitGroup
}

// Open opens the database at path, and creates it or brings it up to date if
// need be. What it cannot open it leaves as it is, and tells by *OpenError.
// Only one process may have it open for writing: see package project's lock.
func Open(ctx context.Context, path string, opts store.Options) (*Store, error) {
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
	if s.readers, err = sql.Open("sqlite", dsn(path, "_pragma=busy_timeout(5000)&_pragma=query_only(1)&_pragma=cache_size(-1000)")); err != nil {
		s.writers.Close()
		return nil, &OpenError{path, "unreadable", err}
	}
	s.readers.SetMaxOpenConns(4)
	s.readers.SetMaxIdleConns(2)
	s.readers.SetConnMaxIdleTime(restAfter) // each has a cache
	s.queries = newQueries(statement.New(s.readers, opts.Damaged, &s.gate))
	if s.writer, err = newWriter(ctx, s.writers, &s.gate, opts); err == nil {
		s.places = s.writer.tx.places
		err = s.writer.identify(path, opts.Valid)
	}
	if err != nil {
		s.readers.Close()
		s.writers.Close()
		return nil, &OpenError{path, statement.Reason(err), err}
	}
	checkpoints, err := newCheckpointer(path, s.writer)
	if err != nil {
		s.readers.Close()
		s.writers.Close()
		return nil, &OpenError{path, "unreadable", err}
	}
	s.ended.Go(s.writer.loop)
	s.ended.Go(checkpoints.loop)
	s.ended.Go(s.indexLoop)
	s.writer.indexDue <- struct{}{} // what was left
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

// prepare sets what holds for the whole database, and migrates it.
func (s *Store) prepare(ctx context.Context) error {
	fail := func(err error) error { return &OpenError{s.path, statement.Reason(err), err} }
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
	// Before anything else: with what a log adds to the file.
	if err := schema.Check(ctx, conn, version); err != nil {
		return fail(err)
	}
	var mode string
	if err := conn.QueryRowContext(ctx, "PRAGMA journal_mode = WAL").Scan(&mode); err != nil {
		return fail(err)
	}
	if err := schema.Migrate(ctx, conn, version, schema.Latest()); err != nil {
		return fail(err)
	}
	if err := os.Chmod(s.path, 0o600); err != nil {
		return fail(err)
	}
	return nil
}

// Path is where the database is.
func (s *Store) Path() string { return s.path }

// Close commits what is queued, and closes the database.
func (s *Store) Close() error {
	s.indexRest()
	s.writer.stop()
	s.ended.Wait()
	s.queries.s.Close()
	return errors.Join(s.readers.Close(), s.writers.Close())
}

// FreeBytes is about how much can still be written to the disk the database is on,
// or a negative number if that is not known.
func (s *Store) FreeBytes() int64 { return freeBytes(filepath.Dir(s.path)) }
