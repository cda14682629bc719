package statement

import (
	"cmp"
	"context"
	"database/sql"
	"maps"
	"slices"
	"sync"

	"github.com/duet-rpc/duet-rpc/internal/store"
)

// preparer is a *sql.DB or a *sql.Conn.
type preparer interface {
	PrepareContext(ctx context.Context, query string) (*sql.Stmt, error)
}

// A Cache prepares each statement once, and sorts its errors. Its methods may be
// called from any goroutine.
type Cache struct {
	on      preparer
	damaged func(error)
	gate    *Gate
	cause   func() error

	mu    sync.Mutex // guards ready
	ready map[string]*sql.Stmt
}

// New makes a Cache for a connection or a pool of them. damaged, which may be nil, is
// told of each read that failed, or found what cannot be. gate, which may be nil, is
// passed by each read. The Cache has to be closed.
func New(on preparer, damaged func(error), gate *Gate) *Cache {
	if damaged == nil {
		damaged = func(error) {}
	}
	if gate == nil {
		gate = &Gate{}
	}
	return &Cache{on: on, damaged: damaged, gate: gate, ready: make(map[string]*sql.Stmt)}
}

// Explain sets a function that is asked why a read failed. Its error, if it has one, takes
// the place of SQLite's. It has to be called before the Cache is used.
func (s *Cache) Explain(cause func() error) { s.cause = cause }

// explained is the error of a read, or its cause, of which it reports damage.
func (s *Cache) explained(err error) error {
	if err != nil && s.cause != nil {
		if cause := s.cause(); cause != nil {
			return cause
		}
	}
	if store.IsDamaged(err) {
		s.damaged(err)
	}
	return err
}

func (s *Cache) get(ctx context.Context, query string) (*sql.Stmt, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if stmt := s.ready[query]; stmt != nil {
		return stmt, nil
	}
	stmt, err := s.on.PrepareContext(ctx, query)
	if err == nil {
		s.ready[query] = stmt
	}
	return stmt, Failed(closed(err))
}

// closed gives the errors of a closed database their name: database/sql has
// none for them.
func closed(err error) error {
	if err != nil && (err.Error() == "sql: database is closed" || err.Error() == "sql: statement is closed") {
		return store.ErrClosed
	}
	return err
}

// Report is for a reader that finds damage by itself.
func (s *Cache) Report(damage error) { s.damaged(damage) }

// Queries are the texts of the statements that were prepared.
func (s *Cache) Queries() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Sorted(maps.Keys(s.ready))
}

// Close gives the statements back. SQLite keeps a connection with statements
// open when it is closed, and so the write-ahead log beside the database.
func (s *Cache) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, stmt := range s.ready {
		stmt.Close()
	}
	clear(s.ready)
}

func (s *Cache) query(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	stmt, err := s.get(ctx, query)
	if err != nil {
		return nil, err
	}
	rows, err := stmt.QueryContext(ctx, args...)
	return rows, Failed(closed(err))
}

// Exec runs a statement that returns no rows.
func (s *Cache) Exec(ctx context.Context, query string, args ...any) (sql.Result, error) {
	stmt, err := s.get(ctx, query)
	if err != nil {
		return nil, err
	}
	result, err := stmt.ExecContext(ctx, args...)
	if err = Failed(err); store.IsDamaged(err) {
		s.damaged(err)
	}
	return result, err
}

// A Scanner is a *sql.Row or *sql.Rows.
type Scanner interface{ Scan(into ...any) error }

// All collects the rows of a query. With an error it returns those before it.
func All[T any](ctx context.Context, s *Cache, scan func(Scanner) (T, error), query string, args ...any) (list []T, err error) {
	err = s.Each(ctx, func(row Scanner) error {
		one, err := scan(row)
		if err == nil {
			list = append(list, one)
		}
		return err
	}, query, args...)
	return list, err
}

// Each calls scan with each row of a query.
func (s *Cache) Each(ctx context.Context, scan func(Scanner) error, query string, args ...any) error {
	err := s.explained(s.scanEach(ctx, scan, query, args...))
	return cmp.Or(err, s.gate.pass(ctx))
}

func (s *Cache) scanEach(ctx context.Context, scan func(Scanner) error, query string, args ...any) error {
	rows, err := s.query(ctx, query, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	row := checkedRow{rows, s.damaged}
	for rows.Next() {
		if err := scan(row); err != nil {
			if ctx.Err() != nil { // nothing is wrong with the row
				return ctx.Err()
			}
			return err
		}
	}
	return Failed(closed(rows.Err()))
}

// One is the only row of a query, or store.ErrNotFound.
func One[T any](ctx context.Context, s *Cache, scan func(Scanner) (T, error), query string, args ...any) (T, error) {
	list, err := All(ctx, s, scan, query, args...)
	var none T
	switch {
	case err != nil:
		return none, err
	case len(list) == 0:
		return none, store.ErrNotFound
	}
	return list[0], nil
}

// Value scans a row of one column.
func Value[T any](row Scanner) (v T, err error) {
	err = row.Scan(&v)
	return v, err
}
