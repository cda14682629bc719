package sqlite

import (
	"context"
	"sort"

	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/store/sqlite/rowjson"
	"github.com/duet-rpc/duet-rpc/internal/store/sqlite/statement"
)

const itemColumns = "i.id, i.thread, i.run, i.seq, i.kind, i.key, i.role, i.content, i.tool, i.title, i.tool_kind, i.input, i.status, i.result, i.parent_id, i.data, i.approval, i.created, i.updated"

func scanItem(row statement.Scanner) (domain.Item, error) {
	var (
		i                domain.Item
		input, data      statement.JSON
		created, updated int64
	)
	err := row.Scan(&i.ID, &i.Thread, &i.Run, &i.Seq, &i.Kind, &i.Key, &i.Role, &i.Content, &i.Tool, &i.Title, &i.ToolKind,
		&input, &i.Status, &i.Result, &i.ParentID, &data, &i.Approval, &created, &updated)
	i.Input, i.Data = input.Raw(), rowjson.ItemData(i.Kind, data.Intact())
	i.Created, i.Updated = fromNano(created), fromNano(updated)
	return i, err
}

// ItemsOfRun lists what a run added to its conversation, in order.
func (q itemQueries) ItemsOfRun(ctx context.Context, run int64) ([]domain.Item, error) {
	return statement.All(ctx, q.s, scanItem, "SELECT "+itemColumns+" FROM items i WHERE i.run = ? ORDER BY i.id", run)
}

// ItemsAfter is ItemsOfRun for at most limit items after the item after.
func (q itemQueries) ItemsAfter(ctx context.Context, run, after int64, limit int) ([]domain.Item, error) {
	return statement.All(ctx, q.s, scanItem, "SELECT "+itemColumns+" FROM items i WHERE i.run = ? AND i.id > ? ORDER BY i.id LIMIT ?", run, after, limit)
}

// LastItem is the last message, thought or tool call of a run.
func (q itemQueries) LastItem(ctx context.Context, run int64) (domain.Item, error) {
	return statement.One(ctx, q.s, scanItem, "SELECT "+itemColumns+" FROM items i WHERE i.run = ? AND i.kind IN ('message', 'thinking', 'tool_call') ORDER BY i.id DESC LIMIT 1", run)
}

// ToolItem is the tool call of a run that has the agent's id.
func (q itemQueries) ToolItem(ctx context.Context, run int64, key string) (domain.Item, error) {
	return statement.One(ctx, q.s, scanItem, "SELECT "+itemColumns+" FROM items i WHERE i.run = ? AND i.key = ? AND i.kind = 'tool_call' ORDER BY i.id DESC LIMIT 1", run, key)
}

// NotedItem is what a run has one of at most: a plan, the note of a change of
// the file that is its key, or of the answer to the approval that is.
func (q itemQueries) NotedItem(ctx context.Context, run int64, kind, key string) (domain.Item, error) {
	return statement.One(ctx, q.s, scanItem, "SELECT "+itemColumns+" FROM items i WHERE i.run = ? AND i.key = ? AND i.kind IN ('plan', 'diff', 'approval') AND i.kind = ?", run, key, kind)
}

// OpenTools lists the tool calls of a run that have not ended.
func (q itemQueries) OpenTools(ctx context.Context, run int64) ([]domain.Item, error) {
	return statement.All(ctx, q.s, scanItem, "SELECT "+itemColumns+" FROM items i WHERE i.run = ? AND i.kind = 'tool_call' AND i.status NOT IN ('completed', 'failed') ORDER BY i.id", run)
}

// OpenDeltas lists the deltas of a run that no item holds yet.
func (q eventQueries) OpenDeltas(ctx context.Context, run int64) ([]domain.Event, error) {
	return q.log(ctx, openDeltas+" ORDER BY seq", run)
}

// HasOpenDeltas reports whether OpenDeltas has any.
func (q eventQueries) HasOpenDeltas(ctx context.Context, run int64) (bool, error) {
	some, err := statement.All(ctx, q.s, statement.Value[int64], "SELECT seq FROM events"+openDeltas+" LIMIT 1", run)
	return len(some) > 0, err
}

// A message's item is made with its number, and keeps it: the last has the
// highest.
const openDeltas = ` WHERE run = ?1 AND key IS NOT NULL AND seq > coalesce(
	(SELECT seq FROM items WHERE run = ?1 AND kind IN ('message', 'thinking') ORDER BY id DESC LIMIT 1), 0)`

// itemData is an item's column data.
func itemData(i domain.Item) string { return asJSON(rowjson.ItemDataOf(i.Data), i.Data == nil) }

// InsertItem adds an item and sets its ID.
func (t *Tx) InsertItem(i *domain.Item) error {
	result, err := t.exec(`INSERT INTO items (thread, run, seq, kind, key, role, content, tool, title, tool_kind, input, status, result, parent_id, data, approval, created, updated, indexed)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		i.Thread, i.Run, i.Seq, i.Kind, i.Key, i.Role, i.Content, i.Tool, i.Title, i.ToolKind, string(i.Input), i.Status, i.Result, i.ParentID,
		itemData(*i), i.Approval, nano(i.Created), nano(i.Updated), t.indexState(*i))
	if err != nil {
		return err
	}
	if i.ID, err = result.LastInsertId(); err == nil {
		t.places.willChange(t, *i, false)
	}
	return err
}

// UpdateItem writes everything of an item that can change.
func (t *Tx) UpdateItem(i domain.Item) error {
	if err := t.dropFromIndex(i); err != nil {
		return err
	}
	t.places.willChange(t, i, true)
	return t.changeOne("an item", `UPDATE items SET seq = ?, content = ?, tool = ?, title = ?, tool_kind = ?, input = ?, status = ?, result = ?, parent_id = ?, data = ?, approval = ?, updated = ?,
		indexed = CASE indexed WHEN 1 THEN 1 ELSE ? END WHERE id = ?`,
		i.Seq, i.Content, i.Tool, i.Title, i.ToolKind, string(i.Input), i.Status, i.Result, i.ParentID, itemData(i), i.Approval, nano(i.Updated), t.indexState(i), i.ID)
}

// noNotes is the condition that an item is none.
const noNotes = " AND i.kind NOT IN ('plan', 'diff', 'approval')"

// ItemsFrom lists items of a run, with notes or without, from the one on in
// which the event is that has so many before it, until they are limit events, or
// one more. before is how many events of the first are before that one. It looks
// at few other items, wherever that is.
func (s *Store) ItemsFrom(ctx context.Context, run int64, notes bool, offset, limit int) (items []domain.Item, before int, err error) {
	p, err := s.placesOf(ctx, run)
	if err != nil {
		return nil, 0, err
	}
	var at place // the last that is not behind offset
	if n := sort.Search(len(p.marks), func(n int) bool { return p.marks[n].count(notes) > offset }); n > 0 {
		at = p.marks[n-1]
	}
	which := " FROM items i WHERE i.run = ? AND i.id > ?"
	if !notes {
		which += noNotes
	}
	which += " ORDER BY i.id LIMIT ?"
	type step struct {
		item   int64
		events int
	}
	steps, err := statement.All(ctx, s.s, func(row statement.Scanner) (one step, err error) {
		err = row.Scan(&one.item, &one.events)
		return one, err
	}, "SELECT i.id, "+itemEvents+which, run, at.item, markEvery)
	if err != nil {
		return nil, 0, err
	}
	after, skip := at.item, offset-at.count(notes)
	for _, one := range steps {
		if one.events > skip {
			break
		}
		skip -= one.events
		after = one.item
	}
	items, err = statement.All(ctx, s.s, scanItem, "SELECT "+itemColumns+which, run, after, limit+1)
	for n, left := 0, limit+skip; n < len(items); n++ {
		if left <= 0 {
			items = items[:n]
			break
		}
		left -= items[n].Events()
	}
	return items, skip, err
}
