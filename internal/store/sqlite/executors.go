package sqlite

import (
	"context"

	"github.com/duet-rpc/duet-rpc/internal/domain"
)

// Tokens lists the tokens of runs that have not ended.
func (q executorQueries) Tokens(ctx context.Context) ([]domain.Token, error) {
	return all(ctx, q.s, func(row scanner) (t domain.Token, err error) {
		return t, row.Scan(&t.Hash, &t.Thread, &t.Run)
	}, "SELECT hash, thread, run FROM tokens")
}

// PutToken adds a token.
func (t *Tx) PutToken(token domain.Token) error {
	_, err := t.exec("INSERT INTO tokens (hash, thread, run) VALUES (?, ?, ?)", token.Hash, token.Thread, token.Run)
	return err
}

// DropTokens forgets the tokens of a run.
func (t *Tx) DropTokens(run int64) error {
	_, err := t.exec("DELETE FROM tokens WHERE run = ?", run)
	return err
}

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

// NoteKeyAccess adds to the audit log of keys. outcome is in words; it never
// has the key.
func (t *Tx) NoteKeyAccess(run int64, service, outcome string) error {
	_, err := t.exec("INSERT INTO key_access (at, run, service, outcome) VALUES (?, ?, ?, ?)", nano(t.now), run, service, outcome)
	return err
}

// KeyAccesses lists the audit log of keys, the newest first.
func (q executorQueries) KeyAccesses(ctx context.Context, limit int) ([]domain.KeyAccess, error) {
	return all(ctx, q.s, func(row scanner) (a domain.KeyAccess, err error) {
		var at int64
		err = row.Scan(&at, &a.Run, &a.Service, &a.Outcome)
		a.At = fromNano(at)
		return a, err
	}, "SELECT at, run, service, outcome FROM key_access ORDER BY id DESC LIMIT ?", limit)
}
