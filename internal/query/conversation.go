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

// Page is part of a conversation, which is counted in events: an entry is one,
// but for a tool call that has a result, which is two.
type Page struct {
	Offset int // how many events are left out at the beginning
	Limit  int // how many there are, or one more; 0: all
	// Spoken leaves out entries that are notes: plans, changed files, answers.
	Spoken bool
}

// A Conversation is what was said up to and in a run, in order.
type Conversation struct {
	Session domain.Session
	Entries []Entry
	// Before is how many events of the first entry are before the page.
	Before int
	Total  int // events of all pages
}

// An Entry is an item with what belongs to it.
type Entry struct {
	domain.Item
	SessionID string // of the item's run
	Native    string // the agent's own session
	Approval  *domain.Approval
	Open      bool // it is still being written
	Cancelled bool // a prompt that was taken back while it was queued: no agent is told of it
}

// Conversation is a page of the conversation that leads to a run: its thread's
// earlier runs, and those of the threads that it was forked from, first. A page
// costs the same wherever it is.
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
	chain, err := q.heads(ctx, s)
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
		if !run.State.Ended() || run.ErrorCode == domain.CodeStoreFull { // else all was closed
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
			if last != nil { // it is not an item meanwhile
				c.Entries = append(c.Entries, entryOf(c, run, *last))
				left--
			}
		}
		c.Total++
	}
	return c, q.addApprovals(ctx, c.Entries)
}

// addItems adds entries of a run to a page, from an event of it on, and returns
// how many events they are.
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
		Item: i, SessionID: run.SessionID, Native: c.Session.Thread.NativeSession, Open: i.ID == 0 && !run.State.Ended(),
		Cancelled: run.State == domain.Cancelled && i.Kind == domain.ItemMessage && i.Role == "user",
	}
}

// addApprovals adds to entries the questions that were asked about them.
func (q *Queries) addApprovals(ctx context.Context, entries []Entry) error {
	var ids []string
	for _, e := range entries {
		if e.Item.Approval != "" {
			ids = append(ids, e.Item.Approval)
		}
	}
	found, err := q.store.Approvals(ctx, ids)
	if err != nil && !store.IsDamaged(err) { // the rest is worth telling
		return err
	}
	for n := range entries {
		if a, there := found[entries[n].Item.Approval]; there {
			entries[n].Approval = &a
		}
	}
	return nil
}

// Items are the items of a run, the message that is being written last.
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

// heads is Chain without most of the runs.
func (q *Queries) heads(ctx context.Context, s domain.Session) ([]domain.RunHead, error) {
	return chainOf(ctx, q, s, q.store.RunHeads)
}

// chainOf lists the runs of a session's thread, and of those that it was forked
// from, as far as they lead to it.
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
		if thread.Parent >= thread.ID { // a fork is made after what it is forked from
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

// Output is what the agent of one run said, without the runs before it.
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
