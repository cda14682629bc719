package query

import (
	"context"
	"errors"
	"math"
	"slices"

	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/store"
	"github.com/duet-rpc/duet-rpc/internal/transcript"
)

// ItemsPage selects items of a session or a turn. The zero value selects the last ones.
type ItemsPage struct {
	Turn   bool   // only items of the turn, and not of those before it
	Before int64  // only items before the one with this id; 0: all
	After  *int64 // only items after the one with this id, the first ones; 0: from the first on
	Limit  int
}

// Items returns a page of the items up to and including a turn, in order. The unfinished message of a
// turn is its last item, and has no id. The cost does not grow with the number of items.
func (q *Queries) Items(ctx context.Context, id string, p ItemsPage) (page []Entry, err error) {
	s, err := q.Turn(ctx, id)
	if err != nil {
		return nil, err
	}
	chain, err := q.Heads(ctx, s)
	if err != nil {
		return nil, store.Explain(err)
	}
	if p.Turn && len(chain) > 1 {
		chain = chain[len(chain)-1:]
	}
	if p.After != nil {
		page, err = q.itemsAfter(ctx, s, chain, *p.After, p.Limit)
	} else {
		page, err = q.itemsBefore(ctx, s, chain, p.Before, p.Limit)
	}
	if err == nil {
		err = q.addApprovals(ctx, page)
	}
	return page, store.Explain(err)
}

// ItemsWithKey returns the items of a turn with a key.
func (q *Queries) ItemsWithKey(ctx context.Context, id, key string) ([]Entry, error) {
	s, err := q.Turn(ctx, id)
	if err != nil {
		return nil, err
	}
	items, err := q.store.ItemsWithKey(ctx, s.Turn.ID, key)
	if err != nil {
		return nil, store.Explain(err)
	}
	head := domain.TurnHead{
		ID: s.Turn.ID, Session: s.Turn.Session, Number: s.Turn.Number, HumanLayerSession: s.HumanLayerSession, State: s.State,
		ErrorCode: s.ErrorCode,
	}
	open, err := q.unfinished(ctx, head)
	if err != nil {
		return nil, store.Explain(err)
	}
	if len(open) > 0 && open[0].Key == key {
		items = append(items, open...)
	}
	entries := entriesOf(s, head, items)
	return entries, store.Explain(q.addApprovals(ctx, entries))
}

func (q *Queries) itemsBefore(
	ctx context.Context, s domain.TurnInSession, chain []domain.TurnHead, before int64, limit int,
) (page []Entry, err error) {
	last, err := q.placeOf(ctx, chain, before, len(chain)-1)
	if err != nil {
		return nil, err
	}
	for n := last; n >= 0 && len(page) < limit; n-- {
		var items []domain.Item
		if before == 0 || n < last {
			if items, err = q.unfinished(ctx, chain[n]); err != nil {
				return nil, err
			}
		}
		end := int64(math.MaxInt64)
		if n == last && before != 0 {
			end = before
		}
		if left := limit - len(page) - len(items); left > 0 {
			older, err := q.store.ItemsBefore(ctx, chain[n].ID, end, left)
			if err != nil {
				return nil, err
			}
			items = append(older, items...)
		}
		page = append(entriesOf(s, chain[n], items), page...)
	}
	return page, nil
}

func (q *Queries) itemsAfter(
	ctx context.Context, s domain.TurnInSession, chain []domain.TurnHead, after int64, limit int,
) (page []Entry, err error) {
	first, err := q.placeOf(ctx, chain, after, 0)
	if err != nil {
		return nil, err
	}
	for n := first; n < len(chain) && len(page) < limit; n++ {
		if n > first {
			after = 0
		}
		items, err := q.store.ItemsAfter(ctx, chain[n].ID, after, limit-len(page))
		if err != nil {
			return nil, err
		}
		if len(page)+len(items) < limit {
			open, err := q.unfinished(ctx, chain[n])
			if err != nil {
				return nil, err
			}
			items = append(items, open...)
		}
		page = append(page, entriesOf(s, chain[n], items)...)
	}
	return page, nil
}

// placeOf returns the place in a chain of the turn that has an item; without an item, otherwise.
func (q *Queries) placeOf(ctx context.Context, chain []domain.TurnHead, item int64, otherwise int) (int, error) {
	if item == 0 {
		return otherwise, nil
	}
	turn, err := q.store.TurnOfItem(ctx, item)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return 0, err
	}
	n := slices.IndexFunc(chain, func(h domain.TurnHead) bool { return h.ID == turn })
	if n < 0 {
		return 0, domain.Errorf(domain.KindItemNotFound, "the session has no item with the id %d; it may have been deleted", item)
	}
	return n, nil
}

// isWriting reports whether a turn has an unfinished message.
func (q *Queries) isWriting(ctx context.Context, turn domain.TurnHead) (bool, error) {
	if turn.State.Ended() && turn.ErrorCode != domain.CodeStoreFull { // everything is closed
		return false, nil
	}
	return q.store.HasOpenDeltas(ctx, turn.ID)
}

// unfinished returns the unfinished message of a turn, if there is one.
func (q *Queries) unfinished(ctx context.Context, turn domain.TurnHead) ([]domain.Item, error) {
	if open, err := q.isWriting(ctx, turn); err != nil || !open {
		return nil, err
	}
	item, err := transcript.Open(ctx, q.store, turn.ID)
	if item == nil {
		return nil, err
	}
	return []domain.Item{*item}, err
}

func entriesOf(s domain.TurnInSession, turn domain.TurnHead, items []domain.Item) []Entry {
	entries := make([]Entry, len(items))
	for n, i := range items {
		entries[n] = entryOf(s, turn, i)
	}
	return entries
}
