package query

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/duet-rpc/duet-rpc/internal/conversation"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/store"
)

// Page selects a part of a conversation, counted in events: an entry is one event, or two for a
// tool call with a result.
type Page struct {
	Offset int // events to skip
	Limit  int // number of events, or one more; 0: all
	// Spoken leaves out notes: plans, changed files, answers.
	Spoken bool
}

// Conversation holds the entries up to and including a run, in order.
type Conversation struct {
	Session domain.Session
	Entries []Entry
	// Before is the number of events of the first entry that precede the page.
	Before int
	Total  int // events of all pages
}

// Entry is an item with its related data.
type Entry struct {
	domain.Item
	SessionID string       // of the item's run
	State     domain.State // of the item's run
	Native    string       // the agent's own session
	Approval  *domain.Approval
	Open      bool // still being written
	Cancelled bool // a cancelled queued prompt, which no agent gets
}

// Conversation returns a page of the conversation that leads to a run: first the earlier runs of
// its thread and of the threads it was forked from. The cost of a page does not depend on its
// position.
func (q *Queries) Conversation(ctx context.Context, id string, p Page) (Conversation, error) {
	s, err := q.Session(ctx, id)
	if err != nil {
		return Conversation{}, err
	}
	c, err := q.page(ctx, s, p)
	return c, store.Explain(err)
}

func (q *Queries) page(ctx context.Context, s domain.Session, p Page) (Conversation, error) {
	c := Conversation{Session: s, Entries: []Entry{}}
	chain, err := q.Heads(ctx, s)
	if err != nil {
		return c, err
	}
	left := p.Limit
	if left <= 0 {
		left = math.MaxInt32
	}
	for _, run := range chain {
		n, err := q.store.Length(ctx, run.ID, !p.Spoken)
		if err != nil {
			return c, err
		}
		open := false
		if !run.State.Ended() || run.ErrorCode == domain.CodeStoreFull { // otherwise everything is closed
			if open, err = q.store.HasOpenDeltas(ctx, run.ID); err != nil {
				return c, err
			}
		}
		begin := max(p.Offset-c.Total, 0) // in this run
		c.Total += n
		if begin < n && left > 0 {
			added, err := q.addItems(ctx, &c, run, begin, left, p.Spoken)
			if err != nil {
				return c, err
			}
			left -= added
		}
		if !open {
			continue
		}
		if c.Total >= p.Offset && left > 0 {
			last, err := conversation.Open(ctx, q.store, run.ID)
			if err != nil {
				return c, err
			}
			if last != nil { // not an item yet
				c.Entries = append(c.Entries, entryOf(c, run, *last))
				left--
			}
		}
		c.Total++
	}
	return c, q.addApprovals(ctx, c.Entries)
}

// addItems adds entries of a run to a page, beginning at one of its events, and returns their
// number of events.
func (q *Queries) addItems(ctx context.Context, c *Conversation, run domain.RunHead, begin, limit int, spoken bool) (added int, err error) {
	items, before, err := q.store.ItemsFrom(ctx, run.ID, !spoken, begin, limit)
	if err != nil || len(items) == 0 {
		return 0, err
	}
	if len(c.Entries) == 0 {
		c.Before = before
	}
	for _, i := range items {
		c.Entries = append(c.Entries, entryOf(*c, run, i))
		added += i.Events()
	}
	return added - before, nil
}

func entryOf(c Conversation, run domain.RunHead, i domain.Item) Entry {
	return Entry{
		Item: i, SessionID: run.SessionID, State: run.State, Native: c.Session.Thread.NativeSession, Open: i.ID == 0 && !run.State.Ended(),
		Cancelled: run.State == domain.Cancelled && i.Kind == domain.ItemMessage && i.Role == "user",
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

// Items returns the items of a run, the unfinished message last.
func (q *Queries) Items(ctx context.Context, run int64) ([]domain.Item, error) {
	items, err := q.store.ItemsOfRun(ctx, run)
	if err != nil {
		return nil, err
	}
	last, err := conversation.Open(ctx, q.store, run)
	if last != nil {
		items = append(items, *last)
	}
	return items, err
}

// Chain lists the runs whose conversation leads to a session, the oldest
// first.
func (q *Queries) Chain(ctx context.Context, s domain.Session) ([]domain.Run, error) {
	return chainOf(ctx, q, s, q.store.RunsOfThread)
}

// Heads is Chain without the texts of the runs.
func (q *Queries) Heads(ctx context.Context, s domain.Session) ([]domain.RunHead, error) {
	return chainOf(ctx, q, s, q.store.RunHeads)
}

// chainOf lists the runs of a session's thread, and of those that it was forked from, that lead to
// it.
func chainOf[T any](ctx context.Context, q *Queries, s domain.Session, of func(ctx context.Context, thread, upTo int64) ([]T, error)) ([]T, error) {
	var parts [][]T // the last first
	thread, upTo := s.Thread, s.Run.ID
	for {
		runs, err := of(ctx, thread.ID, upTo)
		if err != nil {
			return nil, err
		}
		parts = append(parts, runs)
		if thread.Parent == 0 {
			break
		}
		if thread.Parent >= thread.ID { // a fork is newer than its parent
			return nil, fmt.Errorf("%w: the conversation %d is forked from %d", store.ErrDamaged, thread.ID, thread.Parent)
		}
		upTo = thread.ForkRun
		if thread, err = q.store.Thread(ctx, thread.Parent); err != nil {
			return nil, err
		}
	}
	slices.Reverse(parts)
	return slices.Concat(parts...), nil
}

// Output returns the text of one run's agent, without earlier runs.
func (q *Queries) Output(ctx context.Context, s domain.Session) (string, error) {
	items, err := q.Items(ctx, s.Run.ID)
	if err != nil {
		return "", store.Explain(err)
	}
	var texts []string
	for _, i := range items {
		if i.Kind == domain.ItemMessage && i.Role == "assistant" {
			texts = append(texts, i.Content)
		}
	}
	return strings.Join(texts, "\n\n"), nil
}
