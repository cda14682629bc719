package hub

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/store"
	"github.com/duet-rpc/duet-rpc/internal/testkit"
)

func TestNoMoreRunAtOnceThanMayAndTheUrgentFirst(t *testing.T) {
	var now, most atomic.Int64
	var seen prompts
	began, release := make(chan struct{}, 10), make(chan struct{})
	h := openHub(t, database(t), func(ctx context.Context, x *fakeTurn) catalog.ExecutePromptResult {
		seen.add(x)
		n := now.Add(1)
		defer now.Add(-1)
		for old := most.Load(); n > old && !most.CompareAndSwap(old, n); old = most.Load() {
		}
		began <- struct{}{}
		return worksUntil(ctx, release)
	}, func(o *Options) { o.Limits.MaxTurns = 2 })
	var turns []domain.TurnInSession
	for i, priority := range []int{0, 0, 0, 0, 5, 1, 5} {
		s := must(h.Launch(context.Background(), LaunchSpec{Prompt: fmt.Sprint(i), Priority: priority}))(t)
		assert.Equal(t, i >= 2, s.State == domain.Queued, "it starts at once if there is a slot")
		turns = append(turns, s)
	}
	status := must(h.Status(context.Background()))(t)
	assert.Equal(t, []string{"4", "6", "5", "2", "3"}, each(status.Queued, promptOf))
	assert.Len(t, status.Running, 2)
	<-began
	<-began
	for range turns {
		release <- struct{}{} // one by one
	}
	for i, s := range turns {
		turns[i] = await(t, h, s)
		assert.Equal(t, domain.Completed, turns[i].State)
	}
	assert.EqualValues(t, 2, most.Load())
	assert.Len(t, seen.all(), len(turns))
	slices.SortStableFunc(turns, func(a, b domain.TurnInSession) int { return a.Started.Compare(b.Started) })
	assert.Equal(t, []string{"0", "1", "4", "6", "5", "2", "3"}, each(turns, promptOf))
}

func TestATurnThatWaitsForAHumanGivesItsSlotUpAndTakesItBack(t *testing.T) {
	release := make(chan struct{})
	h := openHub(t, database(t), func(ctx context.Context, x *fakeTurn) catalog.ExecutePromptResult {
		if x.p.Prompt == "ask" {
			x.ask(ctx, "Write", nil)
		}
		return worksUntil(ctx, release)
	}, func(o *Options) { o.Limits.MaxTurns = 1 })
	asks := launch(t, h, "ask")
	question := pendingOf(t, h, 1)[0]
	works := launch(t, h, "work")
	waits := launch(t, h, "wait")
	inState(t, h, works, domain.Running)
	approve(t, h, question, "")
	inState(t, h, asks, domain.Running) // not queued, so one more than the limit for a while
	assert.Equal(t, domain.Queued, inState(t, h, waits, domain.Queued).State)
	release <- struct{}{}
	release <- struct{}{}
	inState(t, h, waits, domain.Running)
	close(release)
	for _, s := range []domain.TurnInSession{asks, works, waits} {
		assert.Equal(t, domain.Completed, await(t, h, s).State)
	}
}

func TestABusySessionQueuesItsNextPrompt(t *testing.T) {
	release := make(chan struct{})
	var seen prompts
	h := openHub(t, database(t), func(ctx context.Context, x *fakeTurn) catalog.ExecutePromptResult {
		seen.add(x)
		<-release
		return completed
	})
	a1 := launchIn(t, h, "a", "a1")
	inState(t, h, a1, domain.Running)
	a2 := launchIn(t, h, "a", "a2")
	a3 := must(h.Continue(context.Background(), ContinueSpec{From: a2.UUID, Prompt: "a3"}))(t)
	b1 := launchIn(t, h, "b", "b1")
	inState(t, h, b1, domain.Running) // another session goes on
	for _, s := range []domain.TurnInSession{a2, a3} {
		assert.Equal(t, domain.Queued, inState(t, h, s, domain.Queued).State)
		assert.Equal(t, a1.Session.ID, s.Session.ID)
	}
	assert.Equal(t, a1.HumanLayerSession, a2.ParentHumanLayerSession)
	assert.Equal(t, a2.HumanLayerSession, a3.ParentHumanLayerSession)
	close(release)
	for _, s := range []domain.TurnInSession{a1, a2, a3, b1} {
		await(t, h, s)
	}
	inA := slices.DeleteFunc(seen.all(), func(p string) bool { return p == "b1" })
	assert.Equal(t, []string{"a1", "a2", "a3"}, inA)
}

func TestAFullQueueTakesNoMore(t *testing.T) {
	h := openHub(t, database(t), hang, func(o *Options) { o.Limits.MaxTurns, o.Limits.QueueCap = 1, 2 })
	launch(t, h, "runs")
	waits := launch(t, h, "waits")
	launch(t, h, "waits")
	_, err := h.Launch(context.Background(), LaunchSpec{Prompt: "one too many"})
	assert.Equal(t, domain.KindQueueFull, kindOf(t, err))
	assert.ErrorContains(t, err, "limits.queue_cap")
	_, err = h.Continue(context.Background(), ContinueSpec{From: waits.UUID, Prompt: "one too many"})
	assert.Equal(t, domain.KindQueueFull, kindOf(t, err))
	assert.Len(t, must(h.query.Turns(context.Background(), domain.TurnFilter{}))(t), 3, "nothing is left of it")
	must(h.Interrupt(context.Background(), waits.UUID, ""))(t)
	next := launch(t, h, "there is room again")
	assert.EqualValues(t, 4, next.Task, "no number was used up")
}

func TestATurnThatTakesTooLongIsTimedOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := openHub(t, database(t), hang, func(o *Options) { o.Limits.TurnTimeout = time.Hour })
		byDefault := launch(t, h, "default")
		own := must(h.Launch(context.Background(), LaunchSpec{Prompt: "own", Timeout: time.Minute}))(t)
		time.Sleep(time.Minute - time.Second)
		assert.Equal(t, domain.Running, inState(t, h, own, domain.Running).State)
		time.Sleep(2 * time.Second)
		own = await(t, h, own)
		assert.Equal(t, []any{domain.TimedOut, "TIMEOUT"}, []any{own.State, own.ErrorCode})
		assert.Contains(t, own.Error, "limits.turn_timeout")
		time.Sleep(58 * time.Minute)
		assert.Equal(t, domain.Running, inState(t, h, byDefault, domain.Running).State)
		time.Sleep(time.Minute)
		assert.Equal(t, domain.TimedOut, await(t, h, byDefault).State)
	})
}

func TestTheClockStandsStillWhileATurnWaitsForAHuman(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := openHub(t, database(t), func(ctx context.Context, x *fakeTurn) catalog.ExecutePromptResult {
			time.Sleep(40 * time.Second)
			x.ask(ctx, "Write", nil)
			return hang(ctx, x)
		}, withoutPolling)
		s := must(h.Launch(context.Background(), LaunchSpec{Prompt: "p", Timeout: time.Minute}))(t)
		time.Sleep(41 * time.Second)
		synctest.Wait()
		time.Sleep(72 * time.Hour) // three days
		synctest.Wait()
		pending := must(h.Approvals().Pending(context.Background(), ""))(t)
		require.Len(t, pending, 1)
		approve(t, h, pending[0], "")
		time.Sleep(18 * time.Second)
		synctest.Wait()
		assert.Equal(t, domain.Running, inState(t, h, s, domain.Running).State)
		time.Sleep(5 * time.Second)
		assert.Equal(t, domain.TimedOut, await(t, h, s).State, "its minute has gone")
	})
}

func TestDrainLetsWhatRunsEndAndStartsNothing(t *testing.T) {
	release := make(chan struct{})
	h := openHub(t, database(t), func(context.Context, *fakeTurn) catalog.ExecutePromptResult { <-release; return completed },
		func(o *Options) { o.Limits.MaxTurns = 1 })
	turns := inState(t, h, launch(t, h, "runs"), domain.Running)
	queued := launch(t, h, "queued")
	short, cancel := context.WithTimeout(context.Background(), 30*time.Millisecond)
	defer cancel()
	h.Drain(short)
	assert.Error(t, short.Err(), "it waited")
	var drained sync.WaitGroup
	drained.Go(func() { h.Drain(context.Background()) })
	close(release)
	drained.Wait()
	assert.Equal(t, domain.Completed, await(t, h, turns).State)
	late := launch(t, h, "late")
	for _, s := range []domain.TurnInSession{queued, late} {
		assert.Equal(t, domain.Queued, turnOf(t, h, s.UUID).State)
	}
}

func TestAwaitEndsWithItsContextAndLeavesNothing(t *testing.T) {
	h := openHub(t, database(t), func(ctx context.Context, x *fakeTurn) catalog.ExecutePromptResult {
		if x.p.Prompt == "hang" {
			return hang(ctx, x)
		}
		return completed
	})
	s := launch(t, h, "hang")
	short, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
	defer cancel()
	assert.ErrorIs(t, errorOf(h.Await(short, s.UUID)), context.DeadlineExceeded)
	ended := await(t, h, launch(t, h, "ends"))
	for range 3 {
		await(t, h, ended)
	}
	h.mu.Lock()
	assert.Empty(t, h.awaiting)
	h.mu.Unlock()
	_, err := h.Await(context.Background(), "nobody")
	assert.Equal(t, domain.KindTurnNotFound, kindOf(t, err))
	waited := make(chan error, 1)
	go func() { waited <- errorOf(h.Await(context.Background(), s.UUID)) }()
	require.NoError(t, h.Close())
	err = <-waited
	if err != nil { // or Close ended it first
		assert.Equal(t, domain.KindUnavailable, kindOf(t, err))
	}
}

// crowded has no executor for some sessions.
type crowded struct {
	*executors
	mu   sync.Mutex
	full map[string]bool // by session
}

func (c *crowded) HasRoom(want catalog.LeaseRequest) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return !c.full[want.Session]
}

func TestATurnWithoutAnExecutorWaitsInTheQueueAndHoldsUpNobody(t *testing.T) {
	c := &crowded{full: make(map[string]bool)}
	goOn := make(chan struct{})
	var said prompts
	h := openHub(t, database(t), nil, func(o *Options) {
		o.Limits.MaxTurns = 2
		o.Executors = func(d catalog.Daemon) Executors {
			c.executors = &executors{daemon: d, stops: make(map[string]context.CancelFunc), play: func(ctx context.Context, x *fakeTurn) catalog.ExecutePromptResult {
				said.add(x)
				if x.p.Prompt == "hold" {
					<-goOn
				}
				return completed
			}}
			return c
		}
	})
	hold := launchIn(t, h, "hold", "hold")
	inState(t, h, hold, domain.Running)
	c.mu.Lock()
	for n := range 9 { // the sessions exist only after launch
		s := must(h.Launch(context.Background(), LaunchSpec{Prompt: "first", SessionAlias: fmt.Sprint("full-", n), Draft: true}))(t)
		c.full[s.Session.UUID] = true
	}
	c.mu.Unlock()
	var queued []domain.TurnInSession
	for n := range 9 {
		queued = append(queued, launchIn(t, h, fmt.Sprint("full-", n), "waits"))
	}
	assert.Equal(t, domain.Completed, await(t, h, launchIn(t, h, "other", "passes")).State)
	for _, s := range queued {
		assert.Equal(t, domain.Queued, inState(t, h, s, domain.Queued).State)
	}
	c.mu.Lock()
	c.full = nil
	c.mu.Unlock()
	close(goOn) // the end of a turn makes the hub check again
	for _, s := range queued {
		assert.Equal(t, domain.Completed, await(t, h, s).State)
	}
	assert.Equal(t, []string{"hold", "passes"}, said.all()[:2])
}

// changesStore records the transitions of each transaction, such as "2 starting".
type changesStore struct {
	store.Store

	testkit.Witness // guards changes
	changes         [][]string
}

// recordChanges opens the hub on a recording store.
func recordChanges(c *changesStore) func(*Options) {
	return func(o *Options) {
		open := fakeOf(o).openStore
		fakeOf(o).openStore = func(ctx context.Context, opts store.Options) (_ store.Store, err error) {
			c.Store, err = open(ctx, opts)
			return c, err
		}
	}
}

func (c *changesStore) Write(ctx context.Context, change func(store.Tx) error) error {
	var made []string
	err := c.Store.Write(ctx, func(t store.Tx) error {
		tx := &appendedTx{Tx: t}
		defer func() { made = tx.transitions }()
		return change(tx)
	})
	if err == nil {
		c.Note(func() { c.changes = append(c.changes, made) })
	}
	return err
}

// awaitMade waits until one transaction has made exactly these transitions. Its results are
// readable and announced before the store records them.
func (c *changesStore) awaitMade(t *testing.T, transitions ...string) {
	t.Helper()
	c.Await(t, func() bool {
		c.Lock()
		defer c.Unlock()
		return slices.ContainsFunc(c.changes, func(made []string) bool { return slices.Equal(made, transitions) })
	}, fmt.Sprintf("%q in one change", transitions))
}

type appendedTx struct {
	store.Tx
	transitions []string
}

func (t *appendedTx) Append(e domain.Event) (int64, error) {
	if p, ok := e.Payload.(domain.TurnStateChanged); ok {
		t.transitions = append(t.transitions, fmt.Sprint(e.Turn, " ", p.To))
	}
	return t.Tx.Append(e)
}

// A transaction that lets turns start also starts them, so that a crash leaves none unstarted.
func TestATurnStartsInTheChangeThatLetsItStart(t *testing.T) {
	goOn := func(_ *testing.T, _ *Hub, held chan struct{}) { close(held) }
	for name, c := range map[string]struct {
		prompt string // of the first turn
		free   func(*testing.T, *Hub, chan struct{})
		made   []string
	}{
		"a turn ends":                  {"end", goOn, []string{"1 completed", "2 starting"}},
		"a turn waits for a human":     {"ask", goOn, []string{"1 waiting_input", "2 starting"}},
		"a full disk cuts a run short": {"hang", func(_ *testing.T, h *Hub, _ chan struct{}) { h.cutShort.DiskIsFull(store.ErrFull) }, []string{"1 failed", "2 starting"}},
	} {
		t.Run(name, func(t *testing.T) {
			held := make(chan struct{})
			play := func(ctx context.Context, x *fakeTurn) catalog.ExecutePromptResult {
				if x.p.Prompt == "hang" {
					return hang(ctx, x)
				}
				<-held
				if x.p.Prompt == "ask" {
					return askOnce(ctx, x)
				}
				return completed
			}
			var changes changesStore
			h := openHub(t, database(t), play, recordChanges(&changes), func(o *Options) { o.Limits.MaxTurns = 1 })
			launch(t, h, c.prompt)
			second := launch(t, h, "hang")
			c.free(t, h, held)
			inState(t, h, second, domain.Running)
			changes.awaitMade(t, c.made...)
		})
	}
	t.Run("a process begins", func(t *testing.T) {
		path := database(t)
		h := openHub(t, path, hang)
		h.Drain(t.Context())
		s := launch(t, h, "waits")
		require.NoError(t, h.Close())
		var changes changesStore
		h = openHub(t, path, hang, recordChanges(&changes))
		inState(t, h, s, domain.Running)
		changes.awaitMade(t, "1 starting")
	})
}
