package sqlite

import (
	"context"

	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/store/sqlite/statement"
)

// Rules lists the rules of a thread and of the whole project, the oldest first.
func (q approvalQueries) Rules(ctx context.Context, thread int64) ([]domain.Rule, error) {
	return statement.All(ctx, q.s, scanRule, "SELECT "+ruleColumns+" FROM rules WHERE thread IN (0, ?) ORDER BY id", thread)
}

// AllRules lists the rules of all threads and of the project, the oldest first.
func (q approvalQueries) AllRules(ctx context.Context) ([]domain.Rule, error) {
	return statement.All(ctx, q.s, scanRule, "SELECT "+ruleColumns+" FROM rules ORDER BY id")
}

const ruleColumns = "id, thread, effect, tool, command, pattern, path, created"

func scanRule(row statement.Scanner) (r domain.Rule, err error) {
	var created int64
	err = row.Scan(&r.ID, &r.Thread, &r.Effect, &r.Tool, &r.Command, &r.Pattern, &r.Path, &created)
	r.Created = fromNano(created)
	return r, err
}

// PutRule adds a rule, or notes that it was made again.
func (t *Tx) PutRule(r domain.Rule) error {
	_, err := t.exec("INSERT INTO rules (thread, effect, tool, command, pattern, path, created) VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET created = excluded.created",
		r.Thread, r.Effect, r.Tool, r.Command, r.Pattern, r.Path, nano(t.now))
	return err
}

// DeleteRule takes a rule away. The error is store.ErrNotFound if there is none.
func (t *Tx) DeleteRule(id int64) error {
	return t.changeOne("a rule", "DELETE FROM rules WHERE id = ?", id)
}
