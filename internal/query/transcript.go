package query

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/store"
	"github.com/duet-rpc/duet-rpc/internal/transcript"
)

// Page selects a part of a transcript, counted in events: an entry is one event, or two for a
// tool call with a result.
type Page struct {
	Turn   bool // only items of the turn, and not of those before it
	Offset int  // events to skip
	Limit  int  // number of events, or one more; 0: all
	// Spoken leaves out notes: plans, changed files, answers.
	Spoken bool
}

// Transcript holds the entries up to and including a turn, in order.
type Transcript struct {
	Turn    domain.TurnInSession
	Entries []Entry
	// Before is the number of events of the first entry that precede the page.
	Before int
	Total  int // events of all pages
}

// Entry is an item with its related data.
type Entry struct {
	domain.Item
	Of        domain.TurnHead
	SessionID string       // of the item's turn
	State     domain.State // of the item's turn
	Native    string       // the agent's own session
	Approval  *domain.Approval
	Open      bool // still being written
	Cancelled bool // a cancelled queued prompt, which no agent gets
}

// Transcript returns a page of what leads to a turn: first the earlier turns of
// its session and of the sessions it was forked from. The cost of a page does not depend on its
// position.
func (q *Queries) Transcript(ctx context.Context, id string, p Page) (Transcript, error) {
	s, err := q.Turn(ctx, id)
	if err != nil {
		return Transcript{}, err
	}
	c, err := q.page(ctx, s, p)
	return c, store.Explain(err)
}

func (q *Queries) page(ctx context.Context, s domain.TurnInSession, p Page) (Transcript, error) {
	c := Transcript{Turn: s, Entries: []Entry{}}
	chain, err := q.Heads(ctx, s)
	if err != nil {
		return c, err
	}
	if p.Turn && len(chain) > 1 {
		chain = chain[len(chain)-1:]
	}
	left := p.Limit
	if left <= 0 {
		left = math.MaxInt32
	}
	for _, turn := range chain {
		n, err := q.store.Length(ctx, turn.ID, !p.Spoken)
		if err != nil {
			return c, err
		}
		open, err := q.isWriting(ctx, turn)
		if err != nil {
			return c, err
		}
		begin := max(p.Offset-c.Total, 0) // in this turn
		c.Total += n
		if begin < n && left > 0 {
			added, err := q.addItems(ctx, &c, turn, begin, left, p.Spoken)
			if err != nil {
				return c, err
			}
			left -= added
		}
		if !open {
			continue
		}
		if c.Total >= p.Offset && left > 0 {
			last, err := transcript.Open(ctx, q.store, turn.ID)
			if err != nil {
				return c, err
			}
			if last != nil { // not an item yet
				c.Entries = append(c.Entries, entryOf(c.Turn, turn, *last))
				left--
			}
		}
		c.Total++
	}
	return c, q.addApprovals(ctx, c.Entries)
}

// addItems adds entries of a turn to a page, beginning at one of its events, and returns their
// number of events.
func (q *Queries) addItems(ctx context.Context, c *Transcript, turn domain.TurnHead, begin, limit int, spoken bool) (added int, err error) {
	items, before, err := q.store.ItemsFrom(ctx, turn.ID, !spoken, begin, limit)
	if err != nil || len(items) == 0 {
		return 0, err
	}
	if len(c.Entries) == 0 {
		c.Before = before
	}
	for _, i := range items {
		c.Entries = append(c.Entries, entryOf(c.Turn, turn, i))
		added += i.Events()
	}
	return added - before, nil
}

func entryOf(s domain.TurnInSession, turn domain.TurnHead, i domain.Item) Entry {
	return Entry{
		Item: i, Of: turn, SessionID: turn.HumanLayerSession, State: turn.State, Native: s.Session.NativeSession,
		Open:      i.ID == 0 && !turn.State.Ended(),
		Cancelled: turn.State == domain.Cancelled && i.Kind == domain.ItemMessage && i.Role == "user",
	}
}

// addApprovals adds the approvals of entries.
func (q *Queries) addApprovals(ctx context.Context, entries []Entry) error {
	var ids []string
	for _, e := range entries {
		if e.Item.Approval != "" {
			ids = append(ids, e.Item.Approval)
		}
	}
	found, err := q.store.Approvals(ctx, ids)
	if err != nil && !store.IsDamaged(err) { // the rest is still useful
		return err
	}
	for n := range entries {
		if a, there := found[entries[n].Item.Approval]; there {
			entries[n].Approval = &a
		}
	}
	return nil
}

// ItemsOfTurn returns the items of a turn, the unfinished message last.
func (q *Queries) ItemsOfTurn(ctx context.Context, turn int64) ([]domain.Item, error) {
	items, err := q.store.ItemsOfTurn(ctx, turn)
	if err != nil {
		return nil, err
	}
	last, err := transcript.Open(ctx, q.store, turn)
	if last != nil {
		items = append(items, *last)
	}
	return items, err
}

// Heads lists the turns that lead to a session, the oldest first, without their
// texts.
func (q *Queries) Heads(ctx context.Context, s domain.TurnInSession) ([]domain.TurnHead, error) {
	return chainOf(ctx, q, s, q.store.TurnHeads)
}

// chainOf lists the turns of a session's session, and of those that it was forked from, that lead to
// it.
func chainOf[T any](ctx context.Context, q *Queries, s domain.TurnInSession, of func(ctx context.Context, session, upTo int64) ([]T, error)) ([]T, error) {
	var parts [][]T // the last first
	session, upTo := s.Session, s.Turn.ID
	for {
		turns, err := of(ctx, session.ID, upTo)
		if err != nil {
			return nil, err
		}
		parts = append(parts, turns)
		if session.Parent == 0 {
			break
		}
		if session.Parent >= session.ID { // a fork is newer than its parent
			return nil, fmt.Errorf("%w: the session %d is forked from %d", store.ErrDamaged, session.ID, session.Parent)
		}
		upTo = session.ForkTurn
		if session, err = q.store.Session(ctx, session.Parent); err != nil {
			return nil, err
		}
	}
	slices.Reverse(parts)
	return slices.Concat(parts...), nil
}
