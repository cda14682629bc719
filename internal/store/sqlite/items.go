package sqlite

import (
	"context"
	"strings"

	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/store/sqlite/rowjson"
)

const itemColumns = "i.id, i.thread, i.run, i.seq, i.kind, i.key, i.role, i.content, i.tool, i.title, i.tool_kind, i.input, i.status, i.result, i.parent_id, i.data, i.approval, i.created, i.updated"

func scanItem(row scanner) (domain.Item, error) {
	var (
		i                domain.Item
		input, data      jsonText
		created, updated int64
	)
	err := row.Scan(&i.ID, &i.Thread, &i.Run, &i.Seq, &i.Kind, &i.Key, &i.Role, &i.Content, &i.Tool, &i.Title, &i.ToolKind,
		&input, &i.Status, &i.Result, &i.ParentID, &data, &i.Approval, &created, &updated)
	i.Input, i.Data = input.raw(), rowjson.ItemData(i.Kind, data.intact())
	i.Created, i.Updated = fromNano(created), fromNano(updated)
	return i, err
}

// ItemsOfRun lists what a run added to its conversation, in order.
func (q itemQueries) ItemsOfRun(ctx context.Context, run int64) ([]domain.Item, error) {
	return all(ctx, q.s, scanItem, "SELECT "+itemColumns+" FROM items i WHERE i.run = ? ORDER BY i.id", run)
}

// ItemsAfter is ItemsOfRun for at most limit items after the item after.
func (q itemQueries) ItemsAfter(ctx context.Context, run, after int64, limit int) ([]domain.Item, error) {
	return all(ctx, q.s, scanItem, "SELECT "+itemColumns+" FROM items i WHERE i.run = ? AND i.id > ? ORDER BY i.id LIMIT ?", run, after, limit)
}

// ToolItem is the tool call of a run that has the agent's id.
func (q itemQueries) ToolItem(ctx context.Context, run int64, key string) (domain.Item, error) {
	return one(ctx, q.s, scanItem, "SELECT "+itemColumns+" FROM items i WHERE i.run = ? AND i.key = ? AND i.kind = 'tool_call' ORDER BY i.id DESC LIMIT 1", run, key)
}

// NotedItem is what a run has one of at most: a plan, the note of a change of
// the file that is its key, or of the answer to the approval that is.
func (q itemQueries) NotedItem(ctx context.Context, run int64, kind, key string) (domain.Item, error) {
	return one(ctx, q.s, scanItem, "SELECT "+itemColumns+" FROM items i WHERE i.run = ? AND i.key = ? AND i.kind IN ('plan', 'diff', 'approval') AND i.kind = ?", run, key, kind)
}

// OpenTools lists the tool calls of a run that have not ended.
func (q itemQueries) OpenTools(ctx context.Context, run int64) ([]domain.Item, error) {
	return all(ctx, q.s, scanItem, "SELECT "+itemColumns+" FROM items i WHERE i.run = ? AND i.kind = 'tool_call' AND i.status NOT IN ('completed', 'failed') ORDER BY i.id", run)
}

// OpenDeltas lists the deltas of a run that no item holds yet.
func (q eventQueries) OpenDeltas(ctx context.Context, run int64) ([]domain.Event, error) {
	return q.log(ctx, openDeltas+" ORDER BY seq", run)
}

// HasOpenDeltas reports whether OpenDeltas has any.
func (q eventQueries) HasOpenDeltas(ctx context.Context, run int64) (bool, error) {
	some, err := all(ctx, q.s, scanValue[int64], "SELECT seq FROM events"+openDeltas+" LIMIT 1", run)
	return len(some) > 0, err
}

// A message's item is made with its number, and keeps it: the last has the
// highest.
const openDeltas = ` WHERE run = ?1 AND key IS NOT NULL AND seq > coalesce(
	(SELECT seq FROM items WHERE run = ?1 AND kind IN ('message', 'thinking') ORDER BY id DESC LIMIT 1), 0)`

// rankedAtMost is how many items a search ranks. To rank is to look at each of
// them, and words that are in more of them tell little.
const rankedAtMost = 1000

// search finds items by words: all of them must be there, the last may be the
// beginning of one. The best come first, or, where more than rankedAtMost are
// found, the newest.
func (q itemQueries) search(ctx context.Context, words string, limit, offset int) ([]domain.Hit, error) {
	match := matchQuery(words)
	if match == "" {
		return nil, nil
	}
	found, err := one(ctx, q.s, scanValue[int], "SELECT count(*) FROM (SELECT 1 FROM items_text WHERE items_text MATCH ? LIMIT ?)", match, rankedAtMost+1)
	if err != nil {
		return nil, err
	}
	rank, order := "items_text.rank", "items_text.rank"
	if found > rankedAtMost {
		rank, order = "0.0", "items_text.rowid DESC"
	}
	return all(ctx, q.s, func(row scanner) (h domain.Hit, err error) {
		var snippet string
		var rank float64
		h.Item, err = scanItem(appended{row, []any{&snippet, &rank}})
		h.Snippet, h.Rank = snippet, rank
		return h, err
	}, "SELECT "+itemColumns+`, snippet(items_text, -1, '«', '»', '…', 16), `+rank+`
		FROM items_text JOIN items i ON i.id = items_text.rowid WHERE items_text MATCH ? ORDER BY `+order+` LIMIT ? OFFSET ?`, match, limit, offset)
}

// appended scans more columns behind those that are asked for.
type appended struct {
	row  scanner
	more []any
}

func (a appended) Scan(into ...any) error { return a.row.Scan(append(into, a.more...)...) }

// matchQuery quotes what a human typed, so that nothing in it is FTS5 syntax
// (https://sqlite.org/fts5.html#full_text_query_syntax).
func matchQuery(words string) string {
	var terms []string
	for _, w := range strings.Fields(strings.ReplaceAll(words, "\x00", " ")) { // a NUL would end the query
		terms = append(terms, `"`+strings.ReplaceAll(w, `"`, `""`)+`"`)
	}
	if len(terms) == 0 {
		return ""
	}
	return strings.Join(terms, " ") + "*"
}

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
	return t.changeOne("an item", `UPDATE items SET seq = ?, content = ?, tool = ?, title = ?, tool_kind = ?, input = ?, status = ?, result = ?, data = ?, approval = ?, updated = ?,
		indexed = CASE indexed WHEN 1 THEN 1 ELSE ? END WHERE id = ?`,
		i.Seq, i.Content, i.Tool, i.Title, i.ToolKind, string(i.Input), i.Status, i.Result, itemData(i), i.Approval, nano(i.Updated), t.indexState(i), i.ID)
}
