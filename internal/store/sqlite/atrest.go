package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"sync"

	"modernc.org/sqlite/vfs"

	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/store"
	"github.com/duet-rpc/duet-rpc/internal/store/sqlite/dbfile"
	"github.com/duet-rpc/duet-rpc/internal/store/sqlite/schema"
	"github.com/duet-rpc/duet-rpc/internal/store/sqlite/statement"
)

// An atRest is a database that SQLite reads in place: it makes and locks no file.
type atRest struct {
	*dbfile.AtRest
	system *vfs.FS
	name   string // of system
}

func openAtRest(path string) (*atRest, error) {
	files, err := dbfile.OpenAtRest(path)
	if err != nil {
		return nil, err
	}
	a := &atRest{AtRest: files}
	if a.name, a.system, err = vfs.New(files); err != nil {
		files.Close()
		return nil, err
	}
	return a, nil
}

// open opens the database for SQL. immutable has SQLite look for no log: dbfile reads that.
func (a *atRest) open(query string) (*sql.DB, error) {
	return sql.Open("sqlite", dsn(dbfile.AtRestName, "mode=ro&immutable=1&vfs="+a.name+"&_pragma=temp_store(2)&"+query))
}

// Close has to come after that of each *sql.DB.
func (a *atRest) Close() error { return errors.Join(a.system.Close(), a.AtRest.Close()) }

// An inPlace is a store over a database that no process writes. It is read where it is;
// changes are refused.
type inPlace struct {
	*Store
	files  *atRest
	refuse Refusals

	mu     sync.Mutex  // guards the fields below
	recent *sql.DB     // has an index of words of its own; nil until the first search
	words  itemQueries // of recent
}

// openInPlace opens the database at path. old is true if its format is an earlier one,
// which has to be migrated to be read.
func openInPlace(ctx context.Context, path string, opts store.Options, refuse Refusals) (s *inPlace, old bool, err error) {
	files, err := openAtRest(path)
	if err != nil {
		return nil, false, &OpenError{path, "unreadable", err}
	}
	s = &inPlace{Store: &Store{path: path, places: newPlaces()}, files: files, refuse: refuse}
	if s.readers, err = files.open("_pragma=query_only(1)&_pragma=cache_size(-1000)"); err != nil {
		files.Close()
		return nil, false, &OpenError{path, "unreadable", err}
	}
	s.readers.SetMaxOpenConns(4)
	s.queries = newQueries(s.cache(s.readers, opts.Damaged))
	version := 0
	if err = s.readers.QueryRowContext(ctx, "PRAGMA user_version").Scan(&version); err != nil {
		err = &OpenError{path, statement.Reason(err), err}
	} else if version < schema.Latest() {
		old = true
	} else {
		err = look(ctx, s.readers, path)
	}
	if files.Changed() {
		err = ErrChanging
	}
	if err != nil || old {
		return nil, old, errors.Join(err, s.Close())
	}
	return s, false, nil
}

func (s *inPlace) cache(on *sql.DB, damaged func(error)) *statement.Cache {
	c := statement.New(on, damaged, nil)
	c.Explain(func() error {
		if s.files.Changed() {
			return s.refuse.Changed
		}
		return nil
	})
	return c
}

// Search is as of [Store]. Items that the hub did not index before it ended have an index
// of their own, in memory: their hits come first.
func (s *inPlace) Search(ctx context.Context, words string, limit, offset int) ([]domain.Hit, error) {
	var hits []domain.Hit
	waiting, err := s.unindexed(ctx, everything)
	if err != nil {
		return nil, err
	}
	if waiting {
		recent, err := s.recentWords(ctx)
		if err != nil {
			return nil, err
		}
		if hits, err = recent.search(ctx, words, offset+limit, 0); err != nil {
			return nil, err
		}
	}
	before := min(offset, len(hits)) // of them
	offset -= before
	if hits = hits[before:]; len(hits) >= limit {
		return hits, nil
	}
	more, err := s.search(ctx, words, limit-len(hits), offset)
	return append(hits, more...), err
}

// recentWords makes the index of the items that have none. A table of the name of the
// database's own index takes the place of that.
func (s *inPlace) recentWords(ctx context.Context) (itemQueries, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.recent != nil {
		return s.words, nil
	}
	db, err := s.files.open("_pragma=cache_size(-1000)")
	if err != nil {
		return itemQueries{}, err
	}
	db.SetMaxOpenConns(1) // the table is the connection's
	_, err = db.ExecContext(ctx, "CREATE VIRTUAL TABLE temp.items_text USING fts5 (content, title, result, tokenize = 'unicode61 remove_diacritics 2');"+
		"INSERT INTO temp.items_text (rowid, content, title, result) SELECT id, content, title, result FROM items WHERE "+everything)
	if err != nil {
		db.Close()
		if s.files.Changed() {
			err = s.refuse.Changed
		}
		return itemQueries{}, statement.Failed(err)
	}
	s.recent, s.words = db, itemQueries{s.cache(db, nil)}
	return s.words, nil
}

// Close closes the database.
func (s *inPlace) Close() error {
	s.queries.s.Close()
	errs := []error{s.readers.Close()}
	if s.recent != nil {
		s.words.s.Close()
		errs = append(errs, s.recent.Close())
	}
	return errors.Join(append(errs, s.files.Close())...)
}

// Valid implements store.Store: nothing is written.
func (s *inPlace) Valid() error { return nil }

// Write implements store.Store.
func (s *inPlace) Write(context.Context, func(store.Tx) error) error { return s.refuse.Change }

// Enqueue implements store.Store.
func (s *inPlace) Enqueue(_ func(store.Tx) error, done func(error)) { done(s.refuse.Change) }
