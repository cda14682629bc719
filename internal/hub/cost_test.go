package hub

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/query"
	"github.com/duet-rpc/duet-rpc/internal/store"
)

// countingStore counts the store calls of transactions.
type countingStore struct {
	store.Store

	mu    sync.Mutex // guards calls
	calls map[string]int
}

// countCalls opens the hub on a counting store.
func countCalls(o *Options) (count func(name string) int) {
	c := &countingStore{calls: map[string]int{}}
	open := fakeOf(o).openStore
	fakeOf(o).openStore = func(ctx context.Context, opts store.Options) (s store.Store, err error) {
		c.Store, err = open(ctx, opts)
		return c, err
	}
	return func(name string) int {
		c.mu.Lock()
		defer c.mu.Unlock()
		return c.calls[name]
	}
}

func (c *countingStore) Write(ctx context.Context, change func(store.Tx) error) error {
	return c.Store.Write(ctx, func(t store.Tx) error { return change(countingTx{t, c}) })
}

type countingTx struct {
	store.Tx
	of *countingStore
}

func (t countingTx) count(name string) {
	t.of.mu.Lock()
	defer t.of.mu.Unlock()
	t.of.calls[name]++
}

func (t countingTx) UpdateTurn(r domain.Turn) error {
	t.count("UpdateTurn")
	return t.Tx.UpdateTurn(r)
}

func (t countingTx) TurnsOfSession(ctx context.Context, session, upTo int64) ([]domain.Turn, error) {
	t.count("TurnsOfSession")
	return t.Tx.TurnsOfSession(ctx, session, upTo)
}

func (t countingTx) UntakenAnswers(ctx context.Context, turn int64) ([]domain.Approval, error) {
	t.count("UntakenAnswers")
	return t.Tx.UntakenAnswers(ctx, turn)
}

func (t countingTx) TurnsIn(ctx context.Context, states ...domain.State) ([]domain.Turn, error) {
	t.count("TurnsIn")
	return t.Tx.TurnsIn(ctx, states...)
}

func (t countingTx) Session(ctx context.Context, id int64) (domain.Session, error) {
	t.count("Session")
	return t.Tx.Session(ctx, id)
}

func TestAChangeOfModeCostsTheSameInALongSession(t *testing.T) {
	var count func(string) int
	h := openHub(t, database(t), func(context.Context, *fakeTurn) catalog.ExecutePromptResult { return completed }, func(o *Options) { count = countCalls(o) })
	first := await(t, h, launchIn(t, h, "long", "0"))
	for n := range 20 {
		await(t, h, launchIn(t, h, "long", fmt.Sprint(n+1)))
	}
	updates, lists := count("UpdateTurn"), count("TurnsOfSession")
	mode := catalog.ModeAcceptEdits
	must(h.Settings().Update(t.Context(), first.UUID, domain.SettingsChanged{Mode: &mode}))(t)
	assert.LessOrEqual(t, count("UpdateTurn")-updates, 1, "turns that have ended are not written again")
	assert.Equal(t, lists, count("TurnsOfSession"), "nor read")

	next := must(h.Continue(t.Context(), ContinueSpec{From: first.Session.UUID, Prompt: "on"}))(t)
	assert.Equal(t, mode, next.Mode, "what follows begins with it")
	await(t, h, next)
	fork := must(h.Continue(t.Context(), ContinueSpec{From: first.UUID, Prompt: "from the first"}))(t)
	assert.Equal(t, catalog.ModeDefault, fork.Mode, "a fork accepts nothing unasked")
}

func TestWhoIsStartedNextCostsOneQuery(t *testing.T) {
	c := &crowded{full: map[string]bool{}}
	var count func(string) int
	h := openHub(t, database(t), nil, func(o *Options) {
		count = countCalls(o)
		o.Executors = func(d catalog.Daemon) Executors {
			c.executors = &executors{daemon: d, stops: make(map[string]context.CancelFunc), play: func(context.Context, *fakeTurn) catalog.ExecutePromptResult { return completed }}
			return c
		}
	})
	c.mu.Lock()
	const waiting = 50
	for n := range waiting {
		s := must(h.Launch(t.Context(), LaunchSpec{Prompt: "first", SessionAlias: fmt.Sprint("full-", n), Draft: true}))(t)
		c.full[s.Session.UUID] = true
	}
	c.mu.Unlock()
	for n := range waiting {
		launchIn(t, h, fmt.Sprint("full-", n), "waits")
	}
	before := count("Session")
	await(t, h, launchIn(t, h, "other", "passes"))
	assert.Less(t, count("Session")-before, waiting, "the sessions of those that wait are not read one by one")
}

func TestWhatAFullDiskLeftOpenIsClosedOnce(t *testing.T) {
	var count func(string) int
	h := openHub(t, database(t), hang, func(o *Options) { count = countCalls(o) })
	cutShort := func() int64 {
		s := inState(t, h, launch(t, h, "p"), domain.Running)
		return s.ID
	}
	end := func(ids ...int64) {
		t.Helper()
		require.NoError(t, h.store.Write(t.Context(), func(tx store.Tx) error {
			for _, id := range ids {
				turn, err := tx.Turn(t.Context(), id)
				if err != nil {
					return err
				}
				if err := h.cutShort.Fail(tx, turn); err != nil {
					return err
				}
			}
			return nil
		}))
	}
	closed := func() (turns int) {
		t.Helper()
		before, all := count("UntakenAnswers"), count("TurnsIn")
		require.NoError(t, h.store.Write(t.Context(), h.cutShort.CloseLeftOpen))
		assert.Equal(t, all, count("TurnsIn"), "not all turns that have failed are read")
		return count("UntakenAnswers") - before
	}
	a, b := cutShort(), cutShort()
	end(a)
	assert.Equal(t, 1, closed())
	c := cutShort()
	end(c)
	end(b) // the older one
	assert.Equal(t, 2, closed(), "what was closed before is not looked at again")
	assert.Zero(t, closed())
	require.NoError(t, h.store.Write(t.Context(), func(tx store.Tx) error { return tx.SetMeta("unsettled", "1") }))
	assert.Equal(t, 3, closed(), "from the first turn on, all are closed again")
}

func TestASessionThatWasForkedOftenIsWhole(t *testing.T) {
	h := openHub(t, database(t), hang)
	const forks = 1100
	var last domain.Turn
	require.NoError(t, h.store.Write(t.Context(), func(tx store.Tx) error {
		for n := range forks {
			session := domain.Session{UUID: uuid.NewString(), CWD: "/", Agent: "fake", Parent: last.Session, ForkTurn: last.ID, Created: tx.Now(), Active: tx.Now()}
			if err := tx.InsertSession(&session); err != nil {
				return err
			}
			turn := newTurn(LaunchSpec{Prompt: fmt.Sprint(n), Source: domain.SourceTask}, "fake")
			turn.Session, turn.State, turn.Created, turn.Active = session.ID, domain.Completed, tx.Now(), tx.Now()
			if err := tx.InsertTurn(&turn); err != nil {
				return err
			}
			item := domain.Item{Session: session.ID, Turn: turn.ID, Kind: domain.ItemMessage, Key: fmt.Sprint(n), Role: "user", Content: fmt.Sprint(n), Created: tx.Now(), Updated: tx.Now()}
			if err := tx.InsertItem(&item); err != nil {
				return err
			}
			last = turn
		}
		return nil
	}))
	c := transcriptOf(t, h, last.UUID)
	require.Len(t, c.Entries, forks)
	assert.Equal(t, "0", c.Entries[0].Content, "from its very beginning")
	assert.Equal(t, fmt.Sprint(forks-1), c.Entries[forks-1].Content)
}

// ItemsFrom counts the items that are read.
func (c *countingStore) ItemsFrom(ctx context.Context, turn int64, all bool, begin, limit int) ([]domain.Item, int, error) {
	items, before, err := c.Store.ItemsFrom(ctx, turn, all, begin, limit)
	c.add("items", len(items))
	return items, before, err
}

// Approvals counts the approvals that are looked up.
func (c *countingStore) Approvals(ctx context.Context, ids []string) (map[string]domain.Approval, error) {
	c.add("approvals", len(ids))
	return c.Store.Approvals(ctx, ids)
}

func (c *countingStore) add(name string, n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.calls[name] += n
}

// insertQuestions inserts a turn with n tool calls and an approval for each.
func insertQuestions(t *testing.T, h *Hub, n int) domain.Turn {
	t.Helper()
	r := insert(t, h, domain.Completed)
	require.NoError(t, h.store.Write(t.Context(), func(tx store.Tx) error {
		for i := range n {
			item := domain.Item{Session: r.Session, Turn: r.ID, Kind: domain.ItemTool, Status: "completed", Key: fmt.Sprint(i), Created: tx.Now(), Updated: tx.Now()}
			a := domain.Approval{ID: fmt.Sprint(r.ID, "-", i), Session: r.Session, Turn: r.ID, Type: domain.FunctionCall, CallID: fmt.Sprint(r.ID, "c", i), Status: domain.ApprovalPending, Created: tx.Now()}
			item.Approval = a.ID
			if err := tx.InsertItem(&item); err != nil {
				return err
			}
			if err := tx.InsertApproval(&a); err != nil {
				return err
			}
		}
		return nil
	}))
	return r
}

// A page reads only its own entries and their approvals, wherever it is in the transcript.
func TestAPageReadsItsOwnEntriesOnly(t *testing.T) {
	var count func(string) int
	h := openHub(t, database(t), hang, func(o *Options) { count = countCalls(o) })
	r := insertQuestions(t, h, 200)
	for _, offset := range []int{0, 100, 340} {
		items, approvals := count("items"), count("approvals")
		c := must(h.query.Transcript(t.Context(), r.UUID, query.Page{Offset: offset, Limit: 20}))(t)
		require.Len(t, c.Entries, 10)
		for _, e := range c.Entries {
			require.NotNil(t, e.Approval)
		}
		assert.Equal(t, []int{10, 10}, []int{count("items") - items, count("approvals") - approvals}, "%d", offset)
	}
}
