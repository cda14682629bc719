package sqlite

import (
	"context"

	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/store/sqlite/statement"
)

// Processes lists the agents that may still be alive.
func (q executorQueries) Processes(ctx context.Context) ([]domain.Process, error) {
	return statement.All(ctx, q.s, func(row statement.Scanner) (p domain.Process, err error) {
		return p, row.Scan(&p.PID, &p.Mark, &p.Run)
	}, "SELECT pid, mark, run FROM processes")
}

// PutProcess notes that an agent was started.
func (t *Tx) PutProcess(p domain.Process) error {
	_, err := t.exec("INSERT INTO processes (mark, pid, run) VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET pid = excluded.pid, run = excluded.run", p.Mark, p.PID, p.Run)
	return err
}

// DropProcess notes that an agent has ended.
func (t *Tx) DropProcess(mark string) error {
	_, err := t.exec("DELETE FROM processes WHERE mark = ?", mark)
	return err
}

// NoteKeyAccess is as of [store.Tx].
func (t *Tx) NoteKeyAccess(run int64, service, outcome string) error {
	_, err := t.exec("INSERT INTO key_access (at, run, service, outcome) VALUES (?, ?, ?, ?)", nano(t.now), run, service, outcome)
	return err
}

// KeyAccesses is as of [store.Reader].
func (q executorQueries) KeyAccesses(ctx context.Context, limit int) ([]domain.KeyAccess, error) {
	return statement.All(ctx, q.s, func(row statement.Scanner) (a domain.KeyAccess, err error) {
		var at int64
		err = row.Scan(&at, &a.Run, &a.SessionID, &a.Service, &a.Outcome)
		a.At = fromNano(at)
		return a, err
	}, "SELECT k.at, k.run, coalesce(r.session_id, ''), k.service, k.outcome FROM key_access k LEFT JOIN runs r ON r.id = k.run ORDER BY k.id DESC LIMIT ?", limit)
}
