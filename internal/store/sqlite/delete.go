package sqlite

import (
	"context"

	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/lazyregexp"
	"github.com/duet-rpc/duet-rpc/internal/store/sqlite/statement"
)

// ForkedUpTo is as of [store.ThreadReader].
func (q threadQueries) ForkedUpTo(ctx context.Context, thread int64) (int64, error) {
	return statement.One(ctx, q.s, statement.Value[int64], "SELECT coalesce((SELECT t.fork_run FROM threads t JOIN runs r ON r.id = t.fork_run WHERE t.parent = ? ORDER BY r.place DESC LIMIT 1), 0)", thread)
}

// goneRuns are the runs that are to be deleted: ?1 is their thread, ?2 the run that they
// come after.
const goneRuns = "(SELECT id FROM runs WHERE thread = ?1 AND place > coalesce((SELECT place FROM runs WHERE id = ?2), 0))"

// eraseEvents leaves of events no more than their numbers and their time.
const eraseEvents = "UPDATE events SET type = '" + string(domain.EventErased) + "', thread = 0, run = 0, key = NULL, text = NULL, data = '{}' WHERE "

// DeleteRuns is as of [store.ConversationWriter].
func (t *Tx) DeleteRuns(thread, after int64) error {
	attached, err := t.attachedOnlyTo(thread, after)
	if err != nil {
		return err
	}
	deletions := []string{
		"INSERT INTO items_text (items_text, rowid, content, title, result) SELECT 'delete', id, content, title, result FROM items WHERE indexed = 1 AND run IN " + goneRuns,
		"DELETE FROM items WHERE run IN " + goneRuns,
		"DELETE FROM approvals WHERE run IN " + goneRuns,
		"DELETE FROM changes WHERE run IN " + goneRuns,
		"DELETE FROM change_decisions WHERE run IN " + goneRuns,
		"DELETE FROM aliases WHERE run IN " + goneRuns,
		"DELETE FROM gate_loops WHERE run IN " + goneRuns,
		"DELETE FROM gate_runs WHERE run IN " + goneRuns,
		"DELETE FROM page_messages WHERE run IN " + goneRuns,
		eraseEvents + "run IN " + goneRuns,
	}
	if after == 0 {
		deletions = append(deletions,
			"DELETE FROM aliases WHERE thread = ?1 AND ?2 = 0",
			"DELETE FROM rules WHERE thread = ?1 AND ?2 = 0",
			"DELETE FROM agent_sessions WHERE thread = ?1 AND ?2 = 0",
			eraseEvents+"thread = ?1 AND run = 0 AND ?2 = 0 AND type != '"+string(domain.EventThreadDeleted)+"'",
			"DELETE FROM runs WHERE id IN "+goneRuns,
			"DELETE FROM threads WHERE id = ?1 AND ?2 = 0")
	} else {
		deletions = append(deletions, "DELETE FROM runs WHERE id IN "+goneRuns)
	}
	for _, sql := range deletions {
		if _, err := t.exec(sql, thread, after); err != nil {
			return err
		}
	}
	for id := range attached {
		if _, err := t.exec("DELETE FROM attachments WHERE id = ?", id); err != nil {
			return err
		}
	}
	return nil
}

// attachmentRef is how rows name an attachment; see package rowjson.
var attachmentRef = lazyregexp.New(`"attachment":"([^"]+)"`)

// attachedOnlyTo are the ids of the attachments that no other runs have than those that
// are to be deleted.
func (t *Tx) attachedOnlyTo(thread, after int64) (map[string]bool, error) {
	ids := make(map[string]bool)
	for _, of := range []struct {
		which string
		only  bool
	}{{" IN ", true}, {" NOT IN ", false}} {
		if !of.only && len(ids) == 0 {
			break
		}
		err := t.s.Each(background, func(row statement.Scanner) error {
			var text string
			if err := row.Scan(&text); err != nil {
				return err
			}
			for _, found := range attachmentRef().FindAllStringSubmatch(text, -1) {
				if of.only {
					ids[found[1]] = true
				} else {
					delete(ids, found[1])
				}
			}
			return nil
		}, `SELECT data FROM items WHERE data LIKE '%"attachment":%' AND run`+of.which+goneRuns+
			` UNION ALL SELECT content FROM runs WHERE content LIKE '%"attachment":%' AND id`+of.which+goneRuns, thread, after)
		if err != nil {
			return nil, err
		}
	}
	return ids, nil
}
