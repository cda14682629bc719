package hub

import (
	"context"
	"errors"
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

// crashing is an executor whose connection breaks, or that cannot be started.
type crashing struct {
	*executors
	refuse error
	held   chan struct{} // if set, Acquire waits for it
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
		next := must(h.Continue(context.Background(), ContinueSpec{From: s.UUID, Prompt: "go on"}))(t)
		assert.Equal(t, s.Thread.ID, next.Thread.ID)
		await(t, h, next)
	})
	t.Run("while it waits for a human", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
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
		must(h.Interrupt(context.Background(), s.UUID, ""))(t)
		assert.Equal(t, domain.Interrupted, await(t, h, s).State)
	})
}

func TestAnExecutorThatDoesNotEndATaskIsKilled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &crashing{}
		release := make(chan struct{})
		h := openHub(t, database(t), func(context.Context, *turn) catalog.ExecutePromptResult {
			<-release // despite cancellation
			return completed
		}, withExecutors(c))
		s := inState(t, h, launch(t, h, "p"), domain.Running)
		synctest.Wait()
		must(h.Interrupt(context.Background(), s.UUID, ""))(t)
		time.Sleep(killAfter - time.Second)
		assert.Zero(t, c.killed.Load())
		time.Sleep(2 * time.Second)
		assert.EqualValues(t, 1, c.killed.Load())
		close(release)
		assert.Equal(t, domain.Interrupted, await(t, h, s).State)
	})
}

func TestCloseInterruptsWhatRunsAndKeepsTheQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := database(t)
		var seen prompts
		h := openHub(t, path, func(ctx context.Context, x *turn) catalog.ExecutePromptResult {
			seen.add(x)
			x.say("half")
			return hang(ctx, x)
		}, func(o *Options) { o.Limits.MaxRuns = 1 })
		runs := launch(t, h, "runs")
		queued := launch(t, h, "queued")
		until(t, h, func() bool {
			c, err := h.query.Conversation(context.Background(), runs.UUID, query.Page{})
			return err == nil && len(c.Entries) == 2
		}, "what it says")
		began := time.Now()
		require.NoError(t, h.Close())
		assert.Less(t, time.Since(began), 2*time.Second)
		require.NoError(t, h.Close(), "again")
		assert.Error(t, errorOf(h.Launch(context.Background(), LaunchSpec{Prompt: "too late"})))

		h = openHub(t, path, func(_ context.Context, x *turn) catalog.ExecutePromptResult { seen.add(x); return completed })
		assert.Equal(t, domain.Completed, await(t, h, queued).State)
		left := sessionOf(t, h, runs.UUID)
		assert.Equal(t, domain.Interrupted, left.State)
		assert.Equal(t, "SHUTDOWN", left.ErrorCode)
		assert.Equal(t, "half", left.Result)
		assert.Equal(t, []string{"runs", "queued"}, seen.all())
	})
}

// A killed process leaves its runs in their states.
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
		got := inState(t, h, sessionOf(t, h, left[i].UUID), want)
		assert.Equal(t, was.Active(), got.ErrorCode == "ORPHANED", "%s", was)
	}
}
