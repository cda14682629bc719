package sqlite

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"sort"
	"sync"
	"time"

	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/store"
)

// A Tx is a running transaction. It is valid during the call of its change function, and sees
// that function's changes.
type Tx struct {
	queries
	now      time.Time // of this change
	places   *places
	seq      int64
	latest   time.Time
	events   []domain.Event
	after    []func()
	indexDue bool // new items wait for the text index
	changed  int  // changed statements since the checkpointer was woken
}

func (t *Tx) Now() time.Time { return t.now }

func (t *Tx) Latest() time.Time { return t.latest }

func (t *Tx) AfterCommit(f func()) { t.after = append(t.after, f) }

// queries are the read methods of a store, over the readers' connections or inside of a
// transaction.
type queries struct{ s *statements }

var background = context.Background()

// exec runs a statement that changes data.
func (t *Tx) exec(query string, args ...any) (sql.Result, error) {
	t.changed++
	return t.s.exec(background, query, args...)
}

// changeOne runs a statement that must change one row.
func (t *Tx) changeOne(what, query string, args ...any) error {
	result, err := t.exec(query, args...)
	if err != nil {
		return fmt.Errorf("changing %s: %w", what, err)
	}
	if n, err := result.RowsAffected(); err != nil || n != 1 {
		return fmt.Errorf("changing %s: %w", what, store.ErrNotFound)
	}
	return nil
}

// update writes the changeable columns of a row.
func update[T any](t *Tx, what, table string, row *T) error {
	query, args := change(table, row)
	return t.changeOne(what, query, args...)
}

// insert adds a row, and returns its number. more follows the statement.
func insert[T any](t *Tx, table string, row *T, more string) (id int64, err error) {
	query, args := insertion(table, row)
	result, err := t.exec(query+more, args...)
	if err != nil {
		return 0, err
	}
	return result.LastInsertId()
}

func (q queries) Meta(ctx context.Context, key string) (string, error) {
	v, err := first[string](ctx, q.s, "SELECT value FROM meta WHERE key = ?", key)
	if err == store.ErrNotFound {
		return "", nil
	}
	return v, err
}

func (t *Tx) SetMeta(key, value string) error {
	_, err := t.exec("INSERT INTO meta (key, value) VALUES (?, ?) ON CONFLICT DO UPDATE SET value = excluded.value", key, value)
	return err
}

// itemEvents is Item.Events in SQL, as the index items_run has it.
const itemEvents = "CASE WHEN kind = 'tool_call' AND (status IN ('completed', 'failed') OR result != '') THEN 2 ELSE 1 END"

const (
	// markEvery is the number of items between two marks.
	markEvery = 64
	// turnsPlaced limits the turns with cached places: about 100 bytes each, and 32 for each
	// markEvery items.
	turnsPlaced = 8192
)

// places is an index of a session's items, for entry at any position. It is built once per
// turn from an SQL index, and kept in memory until the turn changes. Any goroutine may use it.
type places struct {
	mu    sync.Mutex // guards all of turns
	turns map[int64]*turnPlaces
}

type turnPlaces struct {
	marks   []place // after each markEvery items
	end     place   // after all items
	whole   bool    // marks and end are valid
	changes int     // number of changes
}

// A place is the position after an item: the number of events before it.
type place struct {
	item   int64
	events int
	notes  int // of events
}

// count returns the number of events before a place, with notes or without.
func (p place) count(notes bool) int {
	if notes {
		return p.events
	}
	return p.events - p.notes
}

func (p *place) add(item int64, kind string, events int) {
	p.item = item
	p.events += events
	if domain.IsNote(kind) {
		p.notes += events
	}
}

func newPlaces() *places { return &places{turns: make(map[int64]*turnPlaces)} }

// of returns a copy of a turn's known places. From now on, changes of the turn are counted in
// entry.
func (p *places) of(turn int64) (known turnPlaces, entry *turnPlaces) {
	p.mu.Lock()
	defer p.mu.Unlock()
	entry = p.turns[turn]
	if entry == nil {
		if len(p.turns) >= turnsPlaced {
			clear(p.turns)
		}
		entry = &turnPlaces{}
		p.turns[turn] = entry
	}
	return *entry, entry
}

// put stores counted places, unless the turn has changed since.
func (p *places) put(entry *turnPlaces, counted turnPlaces) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if entry.changes == counted.changes {
		*entry = counted
	}
}

// willChange records a transaction's changes: a new item follows all others, and an old one may
// get another number of events.
func (p *places) willChange(t *Tx, i domain.Item, old bool) {
	if old && i.Kind != "tool_call" {
		return
	}
	t.AfterCommit(func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		entry := p.turns[i.Turn]
		if entry == nil {
			return
		}
		entry.changes++
		entry.whole = false
		if old {
			n := sort.Search(len(entry.marks), func(n int) bool { return entry.marks[n].item >= i.ID })
			entry.marks = entry.marks[:n]
		}
	})
}

// placesOf returns the places of a turn.
func (s *Store) placesOf(ctx context.Context, turn int64) (turnPlaces, error) {
	all := s.places
	known, entry := all.of(turn)
	if known.whole {
		return known, nil
	}
	var at place
	if n := len(known.marks); n > 0 {
		at = known.marks[n-1]
	}
	known.marks = slices.Clip(known.marks) // other goroutines read them
	count := 0
	err := s.s.each(ctx, func(r row) error {
		var item int64
		var kind string
		var events int
		err := r.Scan(&item, &kind, &events)
		at.add(item, kind, events)
		if count++; count%markEvery == 0 {
			known.marks = append(known.marks, at)
		}
		return err
	}, "SELECT i.id, i.kind, "+itemEvents+" FROM items i WHERE i.turn = ? AND i.id > ? ORDER BY i.id", turn, at.item)
	if err != nil {
		return known, err
	}
	known.end, known.whole = at, true
	all.put(entry, known)
	return known, nil
}

// Length returns the number of events in the items of a turn, with notes or without.
func (s *Store) Length(ctx context.Context, turn int64, notes bool) (int, error) {
	p, err := s.placesOf(ctx, turn)
	return p.end.count(notes), err
}
