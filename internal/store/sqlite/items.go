package sqlite

import (
	"context"
	"encoding/json"
	"slices"
	"sort"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/store"
)

// An itemRow is a row of an item.
type itemRow struct {
	domain.Item
	Data    json.RawMessage `db:"data"`
	Indexed int             `db:"indexed,fixed"` // see indexState
}

// value returns the item, with the data of its kind.
func (r itemRow) value() domain.Item {
	i := r.Item
	if len(r.Data) == 0 || r.Data[0] != '{' || string(r.Data) == damagedJSON {
		return i
	}
	switch r.Kind {
	case domain.ItemTool:
		i.Data = fromJSON[domain.ToolDetails](r.Data)
	case domain.ItemMessage, domain.ItemThinking:
		if c := fromJSON[domain.MessageContent](r.Data); c.Blocks != nil || c.Meta != nil {
			i.Data = c
		}
	case domain.ItemPlan:
		i.Data = fromJSON[domain.Plan](r.Data)
	case domain.ItemFile:
		i.Data = fromJSON[domain.FileNote](r.Data)
	case domain.ItemApproval:
		i.Data = fromJSON[domain.ApprovalNote](r.Data)
	}
	return i
}

// fromJSON decodes valid JSON. It drops members of another type.
func fromJSON[T any](data []byte) (v T) {
	_ = json.Unmarshal(data, &v)
	return v
}

// rowOf returns the row for a new version of an item.
func (t *Tx) rowOf(i domain.Item) (r itemRow, err error) {
	r = itemRow{Item: i, Indexed: t.indexState(i)}
	if i.Data != nil {
		var data string
		data, err = encode(i.Data)
		r.Data = json.RawMessage(data)
	}
	return r, err
}

// items lists the items of a query; which follows FROM items i.
func (q queries) items(ctx context.Context, which string, args ...any) ([]domain.Item, error) {
	rows, err := all[itemRow](ctx, q.s, "SELECT "+columnNames[itemRow]("i")+" FROM items i "+which, args...)
	items := make([]domain.Item, len(rows))
	for n, r := range rows {
		items[n] = r.value()
	}
	return items, err
}

// item returns the first item of a query, or store.ErrNotFound.
func (q queries) item(ctx context.Context, which string, args ...any) (domain.Item, error) {
	items, err := q.items(ctx, which+" LIMIT 1", args...)
	if err != nil {
		return domain.Item{}, err
	}
	if len(items) == 0 {
		return domain.Item{}, store.ErrNotFound
	}
	return items[0], nil
}

func (q queries) ItemsOfTurn(ctx context.Context, turn int64) ([]domain.Item, error) {
	return q.items(ctx, "WHERE i.turn = ? ORDER BY i.id", turn)
}

func (q queries) ItemsBefore(ctx context.Context, turn, before int64, limit int) ([]domain.Item, error) {
	items, err := q.items(ctx, "WHERE i.turn = ? AND i.id < ? ORDER BY i.id DESC LIMIT ?", turn, before, limit)
	slices.Reverse(items)
	return items, err
}

func (q queries) ItemsAfter(ctx context.Context, turn, after int64, limit int) ([]domain.Item, error) {
	return q.items(ctx, "WHERE i.turn = ? AND i.id > ? ORDER BY i.id LIMIT ?", turn, after, limit)
}

func (q queries) ItemsWithKey(ctx context.Context, turn int64, key string) ([]domain.Item, error) {
	return q.items(ctx, "WHERE i.turn = ? AND i.key = ? ORDER BY i.id", turn, key)
}

func (q queries) TurnOfItem(ctx context.Context, item int64) (int64, error) {
	return first[int64](ctx, q.s, "SELECT turn FROM items WHERE id = ?", item)
}

func (q queries) LastItem(ctx context.Context, turn int64) (domain.Item, error) {
	return q.item(ctx, "WHERE i.turn = ? AND i.kind IN ('message', 'thinking', 'tool_call') ORDER BY i.id DESC", turn)
}

func (q queries) ToolItem(ctx context.Context, turn int64, key string) (domain.Item, error) {
	return q.item(ctx, "WHERE i.turn = ? AND i.key = ? AND i.kind = 'tool_call' ORDER BY i.id DESC", turn, key)
}

func (q queries) NotedItem(ctx context.Context, turn int64, kind, key string) (domain.Item, error) {
	return q.item(ctx, "WHERE i.turn = ? AND i.key = ? AND i.kind IN ('plan', 'diff', 'approval') AND i.kind = ?", turn, key, kind)
}

func (q queries) OpenTools(ctx context.Context, turn int64) ([]domain.Item, error) {
	return q.items(ctx, "WHERE i.turn = ? AND i.kind = 'tool_call' AND i.status NOT IN ('completed', 'failed') ORDER BY i.id", turn)
}

func (q queries) OpenDeltas(ctx context.Context, turn int64) ([]domain.Event, error) {
	return q.log(ctx, openDeltas+" ORDER BY seq", turn)
}

func (q queries) HasOpenDeltas(ctx context.Context, turn int64) (bool, error) {
	some, err := all[int64](ctx, q.s, "SELECT seq FROM events"+openDeltas+" LIMIT 1", turn)
	return len(some) > 0, err
}

// openDeltas selects the deltas after a turn's last message. A message's item is inserted with its
// number, and keeps it: the last item has the highest number.
const openDeltas = ` WHERE turn = ?1 AND key IS NOT NULL AND seq > coalesce(
	(SELECT seq FROM items WHERE turn = ?1 AND kind IN ('message', 'thinking') ORDER BY id DESC LIMIT 1), 0)`

func (t *Tx) InsertItem(i *domain.Item) error {
	row, err := t.rowOf(*i)
	if err != nil {
		return err
	}
	if i.ID, err = insert(t, "items", &row, ""); err != nil {
		return err
	}
	t.places.willChange(t, *i, false)
	return nil
}

func (t *Tx) UpdateItem(i domain.Item) error {
	if err := t.dropFromIndex(i); err != nil {
		return err
	}
	row, err := t.rowOf(i)
	if err != nil {
		return err
	}
	t.places.willChange(t, i, true)
	set, args := assignments(&row)
	return t.changeOne("an item", "UPDATE items SET "+set+", indexed = CASE indexed WHEN 1 THEN 1 ELSE ? END WHERE id = ?",
		append(args, row.Indexed, i.ID)...)
}

// noNotes is the condition that an item is not a note.
const noNotes = " AND i.kind NOT IN ('plan', 'diff', 'approval')"

// ItemsFrom lists items of a turn, with notes or without, that contain up to limit events from
// position offset, or one more. before is the number of the first item's events before offset. It
// scans few other items, whatever the offset.
func (s *Store) ItemsFrom(ctx context.Context, turn int64, notes bool, offset, limit int) (items []domain.Item, before int, err error) {
	p, err := s.placesOf(ctx, turn)
	if err != nil {
		return nil, 0, err
	}
	var at place // the last mark at or before offset
	if n := sort.Search(len(p.marks), func(n int) bool { return p.marks[n].count(notes) > offset }); n > 0 {
		at = p.marks[n-1]
	}
	which := "WHERE i.turn = ? AND i.id > ?"
	if !notes {
		which += noNotes
	}
	which += " ORDER BY i.id LIMIT ?"
	type step struct {
		Item   int64 `db:"id"`
		Events int   `db:"events"`
	}
	steps, err := all[step](ctx, s.s, "SELECT i.id, "+itemEvents+" FROM items i "+which, turn, at.item, markEvery)
	if err != nil {
		return nil, 0, err
	}
	after, skip := at.item, offset-at.count(notes)
	for _, one := range steps {
		if one.Events > skip {
			break
		}
		skip -= one.Events
		after = one.Item
	}
	items, err = s.items(ctx, which, turn, after, limit+1)
	for n, left := 0, limit+skip; n < len(items); n++ {
		if left <= 0 {
			items = items[:n]
			break
		}
		left -= items[n].Events()
	}
	return items, skip, err
}

// rankedAtMost limits the items that a search ranks. Ranking scans each of them, and more
// frequent words have little significance.
const rankedAtMost = 1000

// search finds items that contain all words; the last one may be a prefix. It returns the best
// first, or the newest if there are more than rankedAtMost. The directory of a session, which is in most of
// its paths, is no match.
func (q queries) search(ctx context.Context, words string, limit, offset int) ([]domain.Hit, error) {
	match := matchQuery(words)
	if match == "" {
		return nil, nil
	}
	found, err := first[int](ctx, q.s, "SELECT count(*) FROM (SELECT 1 FROM items_text WHERE items_text MATCH ? LIMIT ?)", match,
		rankedAtMost+1)
	if err != nil {
		return nil, err
	}
	beside, inPaths, err := q.besidePaths(ctx, words)
	if err != nil {
		return nil, err
	}
	rank, order := "items_text.rank", "items_text.rank"
	if found > rankedAtMost {
		rank, order = "0.0", "items_text.rowid DESC"
	}
	type hit struct {
		itemRow
		Snippet string  `db:"snippet,read"`
		Rank    float64 `db:"rank,read"`
	}
	rows, err := all[hit](ctx, q.s, "SELECT "+columnNames[itemRow]("i")+`, snippet(items_text, -1, '«', '»', '…', 16), `+rank+`
		FROM items_text JOIN items i ON i.id = items_text.rowid WHERE items_text MATCH ?`+beside+` ORDER BY `+order+` LIMIT ? OFFSET ?`,
		slices.Concat([]any{match}, inPaths, []any{limit, offset})...)
	hits := make([]domain.Hit, len(rows))
	for n, h := range rows {
		hits[n] = domain.Hit{Item: h.value(), Snippet: cutSnippet(h.Snippet), Rank: h.Rank}
	}
	return hits, err
}

// besidePaths returns a condition on the items of a search: they have each word of a session's directory
// elsewhere, too. It ignores the case of ASCII letters, and finds a word inside of others.
func (q queries) besidePaths(ctx context.Context, words string) (condition string, args []any, err error) {
	for word := range strings.FieldsSeq(words) {
		in, err := all[int](ctx, q.s, "SELECT 1 FROM sessions WHERE instr(lower(cwd), lower(?)) > 0 LIMIT 1", word)
		if err != nil {
			return "", nil, err
		}
		if len(in) == 0 {
			continue
		}
		condition += ` AND (SELECT instr(lower(replace(replace(i.content || ' ' || i.title || ' ' || i.result || ' ',
			cwd || '/', ''), cwd || ' ', '')), lower(?)) FROM sessions WHERE sessions.id = i.session) > 0`
		args = append(args, word)
	}
	return condition, args, nil
}

// Limits of a snippet in characters: of the text before the first match, and of the text from
// there on. SQLite counts words, and one word can have a megabyte.
const (
	snippetBefore = 100
	snippetAfter  = 300
)

// cutSnippet shortens a snippet around its first match. A match that is cut stays marked.
func cutSnippet(snippet string) string {
	before, rest := "", snippet
	if at := strings.Index(snippet, "«"); at >= 0 {
		before, rest = snippet[:at], snippet[at:]
	}
	if more := utf8.RuneCountInString(before) - snippetBefore; more > 0 {
		before = "…" + string([]rune(before)[more:])
	}
	if utf8.RuneCountInString(rest) > snippetAfter {
		rest = string([]rune(rest)[:snippetAfter])
		isMatchCut := strings.LastIndex(rest, "«") > strings.LastIndex(rest, "»")
		rest += "…"
		if isMatchCut {
			rest += "»"
		}
	}
	return before + rest
}

// matchQuery quotes a user's words, so that they contain no FTS5 syntax
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

// Search finds items that contain all words; the last one may be a prefix. It returns the best
// first. With very many hits it returns the newest, with rank 0.
func (s *Store) Search(ctx context.Context, words string, limit, offset int) ([]domain.Hit, error) {
	for {
		waiting, err := s.unindexed(ctx, everything)
		if err != nil {
			return nil, err
		}
		if !waiting {
			return s.search(ctx, words, limit, offset)
		}
		if err := s.index(ctx, everything); err != nil {
			return nil, err
		}
	}
}

// Values of items.indexed. The text index is updated outside of the transactions that change
// items, because updating it in each commit slows commits down
// (https://sqlite.org/fts5.html#the_automerge_configuration_option).
const (
	toIndex = 0 // not indexed yet
	indexed = 1 // in the index
	unready = 2 // still changing
)

const (
	// indexAtOnce is the number of items indexed in one operation, which takes about a
	// millisecond. For a caller that waits for all items it is indexWaiting.
	indexAtOnce  = 32
	indexWaiting = 512
	// indexAfter is the pause in writing after which the indexer starts, and indexPause the time
	// between its operations.
	indexAfter = 300 * time.Millisecond
	indexPause = 5 * time.Millisecond
	// indexPatience limits its wait for a pause.
	indexPatience = 10 * time.Second
)

// indexState returns the index state of a newly written item.
func (t *Tx) indexState(i domain.Item) int {
	if i.Kind == "tool_call" && i.Status != "completed" && i.Status != "failed" {
		return unready
	}
	t.indexDue = true
	return toIndex
}

// dropFromIndex removes an item's old words from the index if they change.
func (t *Tx) dropFromIndex(i domain.Item) error {
	const changed = " FROM items WHERE id = ? AND indexed = 1 AND (content IS NOT ? OR title IS NOT ? OR result IS NOT ?)"
	result, err := t.exec("INSERT INTO items_text (items_text, rowid, content, title, result) SELECT 'delete', id, content, title, "+
		"result"+changed,
		i.ID, i.Content, i.Title, i.Result)
	if err != nil {
		return err
	}
	if n, err := result.RowsAffected(); err != nil || n == 0 {
		return err
	}
	_, err = t.exec("UPDATE items SET indexed = 0 WHERE id = ?", i.ID)
	return err
}

// indexSome indexes some items. It includes items that still change only if want asks for all.
func (t *Tx) indexSome(want string) error {
	most := indexAtOnce
	if want == everything {
		most = indexWaiting
	}
	some := "(SELECT id FROM items WHERE " + want + " ORDER BY indexed, id LIMIT ?)"
	if _, err := t.exec("INSERT INTO items_text (rowid, content, title, result) SELECT id, content, title, result FROM items WHERE id IN "+
		""+some, most); err != nil {
		return err
	}
	_, err := t.exec("UPDATE items SET indexed = 1 WHERE id IN "+some, most)
	return err
}

// Conditions of items to index, as in the partial index.
const (
	everything = "indexed != 1"
	readyItems = "indexed != 1 AND indexed = 0"
)

// unindexed reports whether any item needs indexing.
func (s *Store) unindexed(ctx context.Context, want string) (bool, error) {
	some, err := all[int64](ctx, s.s, "SELECT id FROM items WHERE "+want+" LIMIT 1")
	return len(some) > 0, err
}

// index indexes some items, and waits for it.
func (s *Store) index(ctx context.Context, want string) error {
	return s.await(ctx, &operation{change: func(t store.Tx) error { return t.(*Tx).indexSome(want) }})
}

// indexLoop keeps the index up to date during pauses in writing.
func (s *Store) indexLoop() {
	ctx, cancel := context.WithCancel(background)
	var watching sync.WaitGroup
	watching.Go(func() {
		<-s.writer.ended
		cancel()
	})
	defer watching.Wait()
	for {
		select {
		case <-s.writer.indexDue:
		case <-ctx.Done():
			return
		}
		s.awaitSilence(ctx)
		for ctx.Err() == nil {
			waiting, err := s.unindexed(ctx, readyItems)
			// On a nearly full disk the remaining space is for more important data.
			if err != nil || !waiting || s.writer.failing.Load() || s.index(ctx, readyItems) != nil {
				break
			}
			pause(ctx, indexPause)
		}
	}
}

// indexRest indexes the remaining items before the database is closed, so that a reader without a
// hub finds all of them in one order. It leaves very many items, or all if the disk is full, to
// that reader.
func (s *Store) indexRest() {
	if waiting, err := s.unindexed(background, everything); err == nil && waiting && !s.writer.failing.Load() {
		_ = s.index(background, everything) // search finds unindexed items, too
	}
}

// awaitSilence waits for a pause in writing, for indexPatience at most.
func (s *Store) awaitSilence(ctx context.Context) {
	began := time.Now()
	for before := int64(-1); ctx.Err() == nil && time.Since(began) < indexPatience; {
		now := s.writer.commits.Load()
		if now == before {
			return
		}
		before = now
		pause(ctx, indexAfter)
	}
}

func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

func (q queries) Attachment(ctx context.Context, id string) (domain.Attachment, error) {
	return first[domain.Attachment](ctx, q.s, "SELECT "+columnNames[domain.Attachment]("a")+" FROM attachments a WHERE a.id = ?", id)
}

func (q queries) AttachmentPart(ctx context.Context, id string, offset int64, limit int) (domain.AttachmentInfo, []byte, error) {
	type part struct {
		domain.AttachmentInfo
		Data []byte `db:"data,read"`
	}
	p, err := first[part](
		ctx, q.s, "SELECT "+columnNames[domain.AttachmentInfo]("a")+", length(a.data), substr(a.data, ?, ?) FROM attachments a WHERE a.id = ?",
		offset+1, limit, id,
	)
	return p.AttachmentInfo, p.Data, err
}

func (t *Tx) PutAttachment(a domain.Attachment) error {
	_, err := t.exec("INSERT INTO attachments (id, mime, data, created) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING", a.ID, a.MIMEType, a.Data,
		nano(t.Now()))
	return err
}
