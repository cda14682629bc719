package hub

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
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
	"github.com/duet-rpc/duet-rpc/internal/query"
	"github.com/duet-rpc/duet-rpc/internal/store"
)

func TestNoMoreRunAtOnceThanMayAndTheUrgentFirst(t *testing.T) {
	var now, most atomic.Int64
	var seen prompts
	release := make(chan struct{})
	h := openHub(t, database(t), func(ctx context.Context, x *turn) catalog.ExecutePromptResult {
		seen.add(x)
		n := now.Add(1)
		defer now.Add(-1)
		for old := most.Load(); n > old && !most.CompareAndSwap(old, n); old = most.Load() {
		}
		select {
		case <-release:
		case <-ctx.Done():
		}
		return completed
	}, func(o *Options) { o.Limits.MaxRuns = 2 })
	var sessions []domain.Session
	for i, priority := range []int{0, 0, 0, 0, 5, 1, 5} {
		s, err := h.Launch(context.Background(), LaunchSpec{Prompt: fmt.Sprint(i), Priority: priority})
		require.NoError(t, err)
		assert.Equal(t, i >= 2, s.State == domain.Queued, "it starts at once if there is a slot")
		sessions = append(sessions, s)
	}
	status, err := h.Status(context.Background())
	require.NoError(t, err)
	var queued []string
	for _, s := range status.Queued {
		queued = append(queued, s.Prompt)
	}
	assert.Equal(t, []string{"4", "6", "5", "2", "3"}, queued)
	assert.Len(t, status.Running, 2)
	for range sessions {
		release <- struct{}{} // one by one
	}
	for i, s := range sessions {
		sessions[i] = await(t, h, s)
		assert.Equal(t, domain.Completed, sessions[i].State)
	}
	assert.EqualValues(t, 2, most.Load())
	assert.Len(t, seen.all(), len(sessions))
	slices.SortStableFunc(sessions, func(a, b domain.Session) int { return a.Started.Compare(b.Started) })
	var order []string
	for _, s := range sessions {
		order = append(order, s.Prompt)
	}
	assert.Equal(t, []string{"0", "1", "4", "6", "5", "2", "3"}, order)
}

func TestARunThatWaitsForAHumanGivesItsSlotUpAndTakesItBack(t *testing.T) {
	release := make(chan struct{})
	h := openHub(t, database(t), func(ctx context.Context, x *turn) catalog.ExecutePromptResult {
		if x.p.Prompt == "ask" {
			x.ask(ctx, "Write", nil)
		}
		select {
		case <-release:
		case <-ctx.Done():
		}
		return completed
	}, func(o *Options) { o.Limits.MaxRuns = 1 })
	asks := launch(t, h, "ask")
	question := pendingOf(t, h, 1)[0]
	works := launch(t, h, "work")
	waits := launch(t, h, "wait")
	inState(t, h, works, domain.Running)
	approve(t, h, question, "")
	inState(t, h, asks, domain.Running) // without queueing, one too many for a while
	assert.Equal(t, domain.Queued, inState(t, h, waits, domain.Queued).State)
	release <- struct{}{}
	release <- struct{}{}
	inState(t, h, waits, domain.Running)
	close(release)
	for _, s := range []domain.Session{asks, works, waits} {
		assert.Equal(t, domain.Completed, await(t, h, s).State)
	}
}

func TestABusyThreadQueuesItsNextPrompt(t *testing.T) {
	release := make(chan struct{})
	var seen prompts
	h := openHub(t, database(t), func(ctx context.Context, x *turn) catalog.ExecutePromptResult {
		seen.add(x)
		<-release
		return completed
	})
	a1 := launchIn(t, h, "a", "a1")
	inState(t, h, a1, domain.Running)
	a2 := launchIn(t, h, "a", "a2")
	a3, err := h.Continue(context.Background(), ContinueSpec{From: a2.UUID, Prompt: "a3"})
	require.NoError(t, err)
	b1 := launchIn(t, h, "b", "b1")
	inState(t, h, b1, domain.Running) // another thread goes on
	for _, s := range []domain.Session{a2, a3} {
		assert.Equal(t, domain.Queued, inState(t, h, s, domain.Queued).State)
		assert.Equal(t, a1.Thread.ID, s.Thread.ID)
	}
	assert.Equal(t, a1.SessionID, a2.ParentSession)
	assert.Equal(t, a2.SessionID, a3.ParentSession)
	close(release)
	for _, s := range []domain.Session{a1, a2, a3, b1} {
		await(t, h, s)
	}
	var inA []string
	for _, p := range seen.all() {
		if p != "b1" {
			inA = append(inA, p)
		}
	}
	assert.Equal(t, []string{"a1", "a2", "a3"}, inA)
}

func TestAFullQueueTakesNoMore(t *testing.T) {
	h := openHub(t, database(t), hang, func(o *Options) { o.Limits.MaxRuns, o.Limits.QueueCap = 1, 2 })
	launch(t, h, "runs")
	waits := launch(t, h, "waits")
	launch(t, h, "waits")
	_, err := h.Launch(context.Background(), LaunchSpec{Prompt: "one too many"})
	assert.Equal(t, domain.KindQueueFull, kindOf(t, err))
	assert.ErrorContains(t, err, "limits.queue_cap")
	_, err = h.Continue(context.Background(), ContinueSpec{From: waits.UUID, Prompt: "one too many"})
	assert.Equal(t, domain.KindQueueFull, kindOf(t, err))
	list, err := h.query.Sessions(context.Background(), domain.RunFilter{})
	require.NoError(t, err)
	assert.Len(t, list, 3, "nothing is left of it")
	_, err = h.Interrupt(context.Background(), waits.UUID, "")
	require.NoError(t, err)
	next := launch(t, h, "there is room again")
	assert.EqualValues(t, 4, next.Task, "no number was used up")
}

func TestARunThatTakesTooLongIsTimedOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := openHub(t, database(t), hang, func(o *Options) { o.Limits.RunTimeout = time.Hour })
		byDefault := launch(t, h, "default")
		own, err := h.Launch(context.Background(), LaunchSpec{Prompt: "own", Timeout: time.Minute})
		require.NoError(t, err)
		time.Sleep(time.Minute - time.Second)
		assert.Equal(t, domain.Running, inState(t, h, own, domain.Running).State)
		time.Sleep(2 * time.Second)
		own = await(t, h, own)
		assert.Equal(t, domain.TimedOut, own.State)
		assert.Equal(t, "TIMEOUT", own.ErrorCode)
		assert.Contains(t, own.Error, "limits.run_timeout")
		time.Sleep(58 * time.Minute)
		assert.Equal(t, domain.Running, inState(t, h, byDefault, domain.Running).State)
		time.Sleep(time.Minute)
		assert.Equal(t, domain.TimedOut, await(t, h, byDefault).State)
	})
}

func TestTheClockStandsStillWhileARunWaitsForAHuman(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := openHub(t, database(t), func(ctx context.Context, x *turn) catalog.ExecutePromptResult {
			time.Sleep(40 * time.Second)
			x.ask(ctx, "Write", nil)
			return hang(ctx, x)
		})
		s, err := h.Launch(context.Background(), LaunchSpec{Prompt: "p", Timeout: time.Minute})
		require.NoError(t, err)
		time.Sleep(41 * time.Second)
		synctest.Wait()
		time.Sleep(72 * time.Hour) // a long weekend
		synctest.Wait()
		pending, err := h.Approvals().Pending(context.Background(), "")
		require.NoError(t, err)
		require.Len(t, pending, 1)
		approve(t, h, pending[0], "")
		time.Sleep(18 * time.Second)
		synctest.Wait()
		assert.Equal(t, domain.Running, inState(t, h, s, domain.Running).State)
		time.Sleep(5 * time.Second)
		assert.Equal(t, domain.TimedOut, await(t, h, s).State, "its minute has gone")
	})
}

// crashing is an executor whose connection breaks, or that cannot be had.
type crashing struct {
	*executors
	refuse error
	held   chan struct{} // Acquire waits for it, if it is set
	killed atomic.Int64
}

func (c *crashing) Acquire(ctx context.Context, _ catalog.LeaseRequest) (catalog.Lease, error) {
	if c.held != nil {
		select {
		case <-c.held:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	if c.refuse != nil {
		return nil, c.refuse
	}
	return &crashed{leased{executors: c.executors}, c}, nil
}

type crashed struct {
	leased
	of *crashing
}

func (c *crashed) Kill() { c.of.killed.Add(1) }

func (c *crashed) ExecutePrompt(ctx context.Context, p catalog.ExecutePromptParams) (catalog.ExecutePromptResult, error) {
	_, _ = c.leased.ExecutePrompt(ctx, p)
	return catalog.ExecutePromptResult{}, errors.New("connection closed")
}

func withExecutors(c *crashing) func(*Options) {
	return func(o *Options) {
		make := o.Executors
		o.Executors = func(d catalog.Daemon) Executors { c.executors = make(d).(*executors); return c }
	}
}

func TestWhenTheExecutorGoes(t *testing.T) {
	t.Run("while it runs", func(t *testing.T) {
		h := openHub(t, database(t), func(_ context.Context, x *turn) catalog.ExecutePromptResult {
			x.say("half a sen")
			return completed
		}, withExecutors(&crashing{}))
		s := await(t, h, launch(t, h, "p"))
		assert.Equal(t, domain.Interrupted, s.State)
		assert.Equal(t, "EXECUTOR_GONE", s.ErrorCode)
		assert.Equal(t, "half a sen", s.Result, "what it said is kept")
		next, err := h.Continue(context.Background(), ContinueSpec{From: s.UUID, Prompt: "go on"})
		require.NoError(t, err)
		assert.Equal(t, s.Thread.ID, next.Thread.ID)
		await(t, h, next)
	})
	t.Run("while it waits for a human", func(t *testing.T) {
		h := openHub(t, database(t), func(ctx context.Context, x *turn) catalog.ExecutePromptResult {
			asks, cancel := context.WithCancel(ctx)
			time.AfterFunc(50*time.Millisecond, cancel) // the connection breaks
			x.ask(asks, "Write", nil)
			return completed
		}, withExecutors(&crashing{}))
		s := await(t, h, launch(t, h, "p"))
		assert.Equal(t, domain.Interrupted, s.State)
		pendingOf(t, h, 0)
	})
	t.Run("before it comes", func(t *testing.T) {
		h := openHub(t, database(t), hang, withExecutors(&crashing{refuse: errors.New("no such program")}))
		s := await(t, h, launch(t, h, "p"))
		assert.Equal(t, domain.Failed, s.State)
		assert.Equal(t, "START_FAILED", s.ErrorCode)
		assert.Contains(t, s.Error, "no such program")
	})
	t.Run("interrupted before it comes", func(t *testing.T) {
		h := openHub(t, database(t), hang, withExecutors(&crashing{held: make(chan struct{})}))
		s := inState(t, h, launch(t, h, "p"), domain.Starting)
		_, err := h.Interrupt(context.Background(), s.UUID, "")
		require.NoError(t, err)
		assert.Equal(t, domain.Interrupted, await(t, h, s).State)
	})
}

func TestAnExecutorThatDoesNotEndATaskIsKilled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &crashing{}
		release := make(chan struct{})
		h := openHub(t, database(t), func(context.Context, *turn) catalog.ExecutePromptResult {
			<-release // whatever it is told
			return completed
		}, withExecutors(c))
		s := inState(t, h, launch(t, h, "p"), domain.Running)
		synctest.Wait()
		_, err := h.Interrupt(context.Background(), s.UUID, "")
		require.NoError(t, err)
		time.Sleep(killAfter - time.Second)
		assert.Zero(t, c.killed.Load())
		time.Sleep(2 * time.Second)
		assert.EqualValues(t, 1, c.killed.Load())
		close(release)
		assert.Equal(t, domain.Interrupted, await(t, h, s).State)
	})
}

func TestCloseInterruptsWhatRunsAndKeepsTheQueue(t *testing.T) {
	path := database(t)
	var seen prompts
	h := openHub(t, path, func(ctx context.Context, x *turn) catalog.ExecutePromptResult {
		seen.add(x)
		x.say("half")
		return hang(ctx, x)
	}, func(o *Options) { o.Limits.MaxRuns = 1 })
	runs := launch(t, h, "runs")
	queued := launch(t, h, "queued")
	require.Eventually(t, func() bool {
		c, err := h.query.Conversation(context.Background(), runs.UUID, query.Page{})
		return err == nil && len(c.Entries) == 2
	}, within, time.Millisecond)
	began := time.Now()
	require.NoError(t, h.Close())
	assert.Less(t, time.Since(began), 2*time.Second)
	require.NoError(t, h.Close(), "again")
	_, err := h.Launch(context.Background(), LaunchSpec{Prompt: "too late"})
	assert.Error(t, err)

	h = openHub(t, path, func(_ context.Context, x *turn) catalog.ExecutePromptResult { seen.add(x); return completed })
	assert.Equal(t, domain.Completed, await(t, h, queued).State)
	left, err := h.query.Session(context.Background(), runs.UUID)
	require.NoError(t, err)
	assert.Equal(t, domain.Interrupted, left.State)
	assert.Equal(t, "SHUTDOWN", left.ErrorCode)
	assert.Equal(t, "half", left.Result)
	assert.Equal(t, []string{"runs", "queued"}, seen.all())
}

// A process that is killed leaves its runs as they were.
func TestWhatADeadProcessLeftIsOrphaned(t *testing.T) {
	path := database(t)
	h := openHub(t, path, hang)
	h.Drain(context.Background())
	var left []domain.Run
	for _, state := range everyState {
		left = append(left, insert(t, h, state))
	}
	require.NoError(t, h.store.Write(context.Background(), func(tx store.Tx) error {
		return tx.PutProcess(domain.Process{PID: 99, Mark: "mark", Run: 1})
	}))
	require.NoError(t, h.store.Close()) // without the hub's knowledge
	h.cancel()

	var killed []domain.Process
	h = openHub(t, path, func(context.Context, *turn) catalog.ExecutePromptResult { return completed },
		func(o *Options) { o.KillAgents = func(list []domain.Process) { killed = append(killed, list...) } })
	assert.Equal(t, []domain.Process{{PID: 99, Mark: "mark", Run: 1}}, killed)
	for i, was := range everyState {
		want := was
		switch {
		case was.Active():
			want = domain.Interrupted
		case was == domain.Queued:
			want = domain.Completed
		}
		s, err := h.query.Session(context.Background(), left[i].UUID)
		require.NoError(t, err)
		got := inState(t, h, s, want)
		assert.Equal(t, was.Active(), got.ErrorCode == "ORPHANED", "%s", was)
	}
}

func TestDrainLetsWhatRunsEndAndStartsNothing(t *testing.T) {
	release := make(chan struct{})
	h := openHub(t, database(t), func(context.Context, *turn) catalog.ExecutePromptResult { <-release; return completed },
		func(o *Options) { o.Limits.MaxRuns = 1 })
	runs := inState(t, h, launch(t, h, "runs"), domain.Running)
	queued := launch(t, h, "queued")
	short, cancel := context.WithTimeout(context.Background(), 30*time.Millisecond)
	defer cancel()
	h.Drain(short)
	assert.Error(t, short.Err(), "it waited")
	var drained sync.WaitGroup
	drained.Go(func() { h.Drain(context.Background()) })
	close(release)
	drained.Wait()
	assert.Equal(t, domain.Completed, await(t, h, runs).State)
	late := launch(t, h, "late")
	for _, s := range []domain.Session{queued, late} {
		now, err := h.query.Session(context.Background(), s.UUID)
		require.NoError(t, err)
		assert.Equal(t, domain.Queued, now.State)
	}
}

// What waits for a human is not waited for: its question stays.
func TestDrainDoesNotWaitForAHuman(t *testing.T) {
	h := openHub(t, database(t), askOnce)
	inState(t, h, launch(t, h, "asks"), domain.WaitingInput)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	h.Drain(ctx)
	assert.NoError(t, ctx.Err())
	assert.True(t, h.Busy())
}

func TestAwaitEndsWithItsContextAndLeavesNothing(t *testing.T) {
	h := openHub(t, database(t), func(ctx context.Context, x *turn) catalog.ExecutePromptResult {
		if x.p.Prompt == "hang" {
			return hang(ctx, x)
		}
		return completed
	})
	s := launch(t, h, "hang")
	short, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
	defer cancel()
	_, err := h.Await(short, s.UUID)
	assert.ErrorIs(t, err, context.DeadlineExceeded)
	ended := await(t, h, launch(t, h, "ends"))
	for range 3 {
		await(t, h, ended)
	}
	h.mu.Lock()
	assert.Empty(t, h.awaiting)
	h.mu.Unlock()
	_, err = h.Await(context.Background(), "nobody")
	assert.Equal(t, domain.KindRunNotFound, kindOf(t, err))
	waited := make(chan error, 1)
	go func() {
		_, err := h.Await(context.Background(), s.UUID)
		waited <- err
	}()
	require.NoError(t, h.Close())
	err = <-waited
	if err != nil { // or it saw the end that Close made
		assert.Equal(t, domain.KindUnavailable, kindOf(t, err))
	}
}

func TestLaunchRefusesWhatMakesNoSense(t *testing.T) {
	h := openHub(t, database(t), hang)
	for name, c := range map[string]struct {
		spec LaunchSpec
		kind string
	}{
		"no prompt":       {LaunchSpec{Prompt: " \n\t"}, domain.KindInvalid},
		"unknown agent":   {LaunchSpec{Prompt: "p", Agent: "nobody"}, domain.KindUnknownAgent},
		"no directory":    {LaunchSpec{Prompt: "p", CWD: "not-there"}, domain.KindInvalid},
		"a file":          {LaunchSpec{Prompt: "p", CWD: filepath.Base(h.store.Path())}, domain.KindInvalid},
		"unknown mode":    {LaunchSpec{Prompt: "p", Mode: "yolo"}, domain.KindInvalid},
		"mode with blank": {LaunchSpec{Prompt: "p", Mode: "plan "}, domain.KindInvalid},
	} {
		_, err := h.Launch(context.Background(), c.spec)
		require.Error(t, err, name)
		assert.Equal(t, c.kind, kindOf(t, err), name)
	}
	_, err := h.Continue(context.Background(), ContinueSpec{From: "nobody", Prompt: "p"})
	assert.Equal(t, domain.KindRunNotFound, kindOf(t, err))
	_, err = h.Launch(context.Background(), LaunchSpec{Prompt: "p", CallerID: "mine"})
	require.NoError(t, err)
	_, err = h.Launch(context.Background(), LaunchSpec{Prompt: "p", CallerID: "mine"})
	assert.Equal(t, domain.KindInvalid, kindOf(t, err), "an id of the caller's is used once")
	status, err := h.Status(context.Background())
	require.NoError(t, err)
	assert.Equal(t, domain.Counts{domain.Running: 1}, withoutStarting(status.Counts))
}

func withoutStarting(c domain.Counts) domain.Counts {
	return domain.Counts{domain.Running: c[domain.Running] + c[domain.Starting]}
}

// crowded are executors of which there is none for some threads.
type crowded struct {
	*executors
	mu   sync.Mutex
	full map[string]bool // by thread
}

func (c *crowded) HasRoom(want catalog.LeaseRequest) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return !c.full[want.Thread]
}

func TestARunWithoutAnExecutorWaitsInTheQueueAndHoldsUpNobody(t *testing.T) {
	c := &crowded{full: make(map[string]bool)}
	goOn := make(chan struct{})
	var said prompts
	h := openHub(t, database(t), nil, func(o *Options) {
		o.Limits.MaxRuns = 2
		o.Executors = func(d catalog.Daemon) Executors {
			c.executors = &executors{daemon: d, stops: make(map[string]context.CancelFunc), play: func(ctx context.Context, x *turn) catalog.ExecutePromptResult {
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
	for n := range 9 { // the threads of a caller are known when they are there
		s, err := h.Launch(context.Background(), LaunchSpec{Prompt: "first", ThreadAlias: fmt.Sprint("full-", n), Draft: true})
		require.NoError(t, err)
		c.full[s.Thread.UUID] = true
	}
	c.mu.Unlock()
	var queued []domain.Session
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
	close(goOn) // the end of a run, after which it is looked again
	for _, s := range queued {
		assert.Equal(t, domain.Completed, await(t, h, s).State)
	}
	assert.Equal(t, []string{"hold", "passes"}, said.all()[:2])
}

func TestAPlainCommandCannotBeHeldToPlanMode(t *testing.T) {
	ctx := context.Background()
	for driver, held := range map[string]bool{"command": false, "acp": true, "executor": true} {
		h := openHub(t, database(t), func(context.Context, *turn) catalog.ExecutePromptResult { return completed },
			func(o *Options) { o.Agents = agents{driver} })
		_, err := h.Launch(ctx, LaunchSpec{Prompt: "p", Mode: catalog.ModePlan})
		first := await(t, h, launch(t, h, "p"))
		mode := catalog.ModePlan
		_, changed := h.UpdateSettings(ctx, first.UUID, SettingsChange{Mode: &mode})
		if held {
			assert.NoError(t, err, driver)
			assert.NoError(t, changed, driver)
			continue
		}
		for _, err := range []error{err, changed} {
			var e *domain.Error
			require.ErrorAs(t, err, &e)
			assert.Equal(t, domain.KindInvalid, e.Kind)
			assert.Equal(t, "permission_mode", e.Param)
			assert.Contains(t, e.Expected, "the agent fake can be held to")
			assert.NotContains(t, e.Accepted, "plan")
		}
		_, err = h.Continue(ctx, ContinueSpec{From: first.UUID, Prompt: "p"})
		assert.NoError(t, err, "other modes are as good as none")
	}
}
