package store

import "context"

// Rules lists the rules of a thread and of the whole project, the oldest first.
func (q queries) Rules(ctx context.Context, thread int64) ([]Rule, error) {
	return all(ctx, q.s, func(row scanner) (r Rule, err error) {
		var created int64
		err = row.Scan(&r.ID, &r.Thread, &r.Effect, &r.Tool, &r.Command, &created)
		r.Created = fromNano(created)
		return r, err
	}, "SELECT id, thread, effect, tool, command, created FROM rules WHERE thread IN (0, ?) ORDER BY id", thread)
}

// PutRule adds a rule, unless it is there.
func (t *Tx) PutRule(r Rule) error {
	_, err := t.exec("INSERT INTO rules (thread, effect, tool, command, created) VALUES (?, ?, ?, ?, ?) ON CONFLICT DO NOTHING",
		r.Thread, r.Effect, r.Tool, r.Command, nano(t.Now))
	return err
}
