package sqlite

import (
	"context"

	"github.com/duet-rpc/duet-rpc/internal/domain"
)

// Processes lists the agents that may still be alive.
func (q executorQueries) Processes(ctx context.Context) ([]domain.Process, error) {
	return all(ctx, q.s, func(row scanner) (p domain.Process, err error) {
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
	return all(ctx, q.s, func(row scanner) (a domain.KeyAccess, err error) {
		var at int64
		err = row.Scan(&at, &a.Run, &a.Service, &a.Outcome)
		a.At = fromNano(at)
		return a, err
	}, "SELECT at, run, service, outcome FROM key_access ORDER BY id DESC LIMIT ?", limit)
}
