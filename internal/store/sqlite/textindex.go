package sqlite

import (
	"context"
	"sync"
	"time"

	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/store"
	"github.com/duet-rpc/duet-rpc/internal/store/sqlite/statement"
)

// Values of items.indexed. The index of words is brought up to date beside
// everything else: an index that grows with each commit makes commits wait
// (https://sqlite.org/fts5.html#the_automerge_configuration_option).
const (
	toIndex = 0 // its words are to be put into the index
	indexed = 1 // they are there
	unready = 2 // it still changes
)

const (
	// indexAtOnce is how many items are indexed in one go: it takes about a
	// millisecond. Where somebody waits for all, there are more in one.
	indexAtOnce  = 32
	indexWaiting = 512
	// indexAfter is the silence after which the indexer goes to work, and
	// indexPause is between its goes.
	indexAfter = 300 * time.Millisecond
	indexPause = 5 * time.Millisecond
	// indexPatience is for how long it waits for silence.
	indexPatience = 10 * time.Second
)

// indexState is where an item stands that is written now.
func (t *Tx) indexState(i domain.Item) int {
	if i.Kind == "tool_call" && i.Status != "completed" && i.Status != "failed" {
		return unready
	}
	t.indexDue = true
	return toIndex
}

// dropFromIndex takes an item's old words out of the index if it gets others.
func (t *Tx) dropFromIndex(i domain.Item) error {
	const changed = " FROM items WHERE id = ? AND indexed = 1 AND (content IS NOT ? OR title IS NOT ? OR result IS NOT ?)"
	result, err := t.exec("INSERT INTO items_text (items_text, rowid, content, title, result) SELECT 'delete', id, content, title, result"+changed,
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

// indexSome puts some items into the index, those that still change only if
// all are wanted.
func (t *Tx) indexSome(want string) error {
	most := indexAtOnce
	if want == everything {
		most = indexWaiting
	}
	some := "(SELECT id FROM items WHERE " + want + " ORDER BY indexed, id LIMIT ?)"
	if _, err := t.exec("INSERT INTO items_text (rowid, content, title, result) SELECT id, content, title, result FROM items WHERE id IN "+some, most); err != nil {
		return err
	}
	_, err := t.exec("UPDATE items SET indexed = 1 WHERE id IN "+some, most)
	return err
}

// What is to be indexed, as the partial index knows it.
const (
	everything = "indexed != 1"
	readyItems = "indexed != 1 AND indexed = 0"
)

// unindexed reports whether something is to be indexed.
func (s *Store) unindexed(ctx context.Context, want string) (bool, error) {
	some, err := statement.All(ctx, s.s, statement.Value[int64], "SELECT id FROM items WHERE "+want+" LIMIT 1")
	return len(some) > 0, err
}

// index puts some items into the index, and waits for it.
func (s *Store) index(ctx context.Context, want string) error {
	return s.await(ctx, &operation{change: func(t store.Tx) error { return t.(*Tx).indexSome(want) }})
}

// indexLoop keeps the index up to date while nothing else is written.
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
			// What room is left on a full disk is for what matters more.
			if err != nil || !waiting || s.writer.failing.Load() || s.index(ctx, readyItems) != nil {
				break
			}
			pause(ctx, indexPause)
		}
	}
}

// indexRest puts what is left into the index before the database is closed, so that
// a reader without a hub finds all of it in one order. Of very many items some are left
// to that reader, and where the disk is full all are.
func (s *Store) indexRest() {
	if waiting, err := s.unindexed(background, everything); err == nil && waiting && !s.writer.failing.Load() {
		_ = s.index(background, everything) // what is not indexed is found all the same
	}
}

// awaitSilence waits until nothing is written for a while, but not for ever.
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
