package sqlite

import (
	"context"

	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/store/sqlite/statement"
)

func scanChange(row statement.Scanner) (c domain.Change, err error) {
	var updated int64
	err = row.Scan(&c.Run, &c.Path, &c.Before, &c.After, &c.Binary, &c.Seq, &updated)
	c.Updated = fromNano(updated)
	return c, err
}

// Changes lists the files that a run changed, by path.
func (q itemQueries) Changes(ctx context.Context, run int64) ([]domain.Change, error) {
	return statement.All(ctx, q.s, scanChange, "SELECT run, path, before, after, binary, seq, updated FROM changes WHERE run = ? ORDER BY path", run)
}

// PutChange keeps how a run changed a file. What the file was before is kept
// from the first time.
func (t *Tx) PutChange(c domain.Change) error {
	_, err := t.exec(`INSERT INTO changes (run, path, before, after, binary, seq, updated) VALUES (?, ?, ?, ?, ?, ?, ?)
		ON CONFLICT DO UPDATE SET after = excluded.after, binary = binary OR excluded.binary, seq = excluded.seq, updated = excluded.updated`,
		c.Run, c.Path, c.Before, c.After, c.Binary, c.Seq, nano(c.Updated))
	return err
}
