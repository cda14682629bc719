package sqlite

import (
	"context"
	"database/sql"
	"sync"

	"github.com/duet-rpc/duet-rpc/internal/store"
)

// preparer is a *sql.DB or a *sql.Conn.
type preparer interface {
	PrepareContext(ctx context.Context, query string) (*sql.Stmt, error)
}

// statements prepares each statement once.
type statements struct {
	on      preparer
	damaged func(error) // is told of each read that failed, or found what cannot be

	mu    sync.Mutex // guards ready
	ready map[string]*sql.Stmt
}

func newStatements(on preparer, damaged func(error)) *statements {
	if damaged == nil {
		damaged = func(error) {}
	}
	return &statements{on: on, damaged: damaged, ready: make(map[string]*sql.Stmt)}
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

// closed gives the errors of a closed database their name: database/sql has
// none for them.
func closed(err error) error {
	if err != nil && (err.Error() == "sql: database is closed" || err.Error() == "sql: statement is closed") {
		return store.ErrClosed
	}
	return err
}

// close gives the statements back. SQLite keeps a connection with statements
// open when it is closed, and so the write-ahead log beside the database.
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

// scanner is a *sql.Row or *sql.Rows.
type scanner interface{ Scan(into ...any) error }

// all collects the rows of a query. With an error it returns those before it.
func all[T any](ctx context.Context, s *statements, scan func(scanner) (T, error), query string, args ...any) (list []T, err error) {
	err = s.each(ctx, func(row scanner) error {
		one, err := scan(row)
		if err == nil {
			list = append(list, one)
		}
		return err
	}, query, args...)
	return list, err
}

// each calls scan with each row of a query.
func (s *statements) each(ctx context.Context, scan func(scanner) error, query string, args ...any) (err error) {
	defer func() {
		if store.IsDamaged(err) {
			s.damaged(err)
		}
	}()
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
	return failed(closed(rows.Err()))
}

// one is the only row of a query, or store.ErrNotFound.
func one[T any](ctx context.Context, s *statements, scan func(scanner) (T, error), query string, args ...any) (T, error) {
	list, err := all(ctx, s, scan, query, args...)
	var none T
	switch {
	case err != nil:
		return none, err
	case len(list) == 0:
		return none, store.ErrNotFound
	}
	return list[0], nil
}

func scanValue[T any](row scanner) (v T, err error) {
	err = row.Scan(&v)
	return v, err
}
