package hub

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/config"
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
		h := openHub(t, database(t), func(_ context.Context, x *fakeTurn) catalog.ExecutePromptResult {
			x.say("half a sen")
			return completed
		}, withExecutors(&crashing{}))
		s := await(t, h, launch(t, h, "p"))
		assert.Equal(t, []any{domain.Interrupted, "EXECUTOR_GONE"}, []any{s.State, s.ErrorCode})
		assert.Equal(t, "half a sen", s.Result, "what it said is kept")
		next := must(h.Continue(context.Background(), ContinueSpec{From: s.UUID, Prompt: "go on"}))(t)
		assert.Equal(t, s.Session.ID, next.Session.ID)
		await(t, h, next)
	})
	t.Run("while it waits for a human", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			h := openHub(t, database(t), func(ctx context.Context, x *fakeTurn) catalog.ExecutePromptResult {
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
		assert.Equal(t, []any{domain.Failed, "START_FAILED"}, []any{s.State, s.ErrorCode})
		assert.Contains(t, s.Error, "no such program")
	})
	t.Run("before it comes, as the disk fails", func(t *testing.T) {
		h := openHub(t, database(t), hang, withExecutors(&crashing{refuse: fmt.Errorf("a page: %w", store.ErrDamaged)}))
		s := await(t, h, launch(t, h, "p"))
		assert.Equal(t, []any{domain.Failed, "START_FAILED"}, []any{s.State, s.ErrorCode})
		assert.Equal(t, store.TextDamaged, s.Error)
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
		h := openHub(t, database(t), func(context.Context, *fakeTurn) catalog.ExecutePromptResult {
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
		h := openHub(t, path, func(ctx context.Context, x *fakeTurn) catalog.ExecutePromptResult {
			seen.add(x)
			x.say("half")
			return hang(ctx, x)
		}, func(o *Options) { o.Limits.MaxTurns = 1 })
		turns := launch(t, h, "runs")
		queued := launch(t, h, "queued")
		until(t, h, func() bool {
			c, err := h.query.Transcript(context.Background(), turns.UUID, query.Page{})
			return err == nil && len(c.Entries) == 2
		}, "what it says")
		began := time.Now()
		require.NoError(t, h.Close())
		assert.Less(t, time.Since(began), 2*time.Second)
		require.NoError(t, h.Close(), "again")
		assert.Error(t, errorOf(h.Launch(context.Background(), LaunchSpec{Prompt: "too late"})))

		h = openHub(t, path, func(_ context.Context, x *fakeTurn) catalog.ExecutePromptResult { seen.add(x); return completed })
		assert.Equal(t, domain.Completed, await(t, h, queued).State)
		left := turnOf(t, h, turns.UUID)
		assert.Equal(t, []any{domain.Interrupted, "SHUTDOWN"}, []any{left.State, left.ErrorCode})
		assert.Equal(t, "half", left.Result)
		assert.Equal(t, []string{"runs", "queued"}, seen.all())
	})
}

// A killed process leaves its turns in their states.
func TestWhatADeadProcessLeftIsOrphaned(t *testing.T) {
	path := database(t)
	h := openHub(t, path, hang)
	h.Drain(context.Background())
	var left []domain.Turn
	for _, state := range everyState {
		left = append(left, insert(t, h, state))
	}
	require.NoError(t, h.store.Write(context.Background(), func(tx store.Tx) error {
		return tx.PutProcess(domain.Process{PID: 99, Mark: "mark", Turn: 1})
	}))
	require.NoError(t, h.store.Close()) // without the hub's knowledge
	h.cancel()

	var killed []domain.Process
	h = openHub(t, path, func(context.Context, *fakeTurn) catalog.ExecutePromptResult { return completed },
		func(o *Options) { o.KillAgents = func(list []domain.Process) { killed = append(killed, list...) } })
	assert.Equal(t, []domain.Process{{PID: 99, Mark: "mark", Turn: 1}}, killed)
	for i, was := range everyState {
		want := was
		switch {
		case was.Active():
			want = domain.Interrupted
		case was == domain.Queued:
			want = domain.Completed
		}
		got := inState(t, h, turnOf(t, h, left[i].UUID), want)
		assert.Equal(t, was.Active(), got.ErrorCode == "ORPHANED", "%s", was)
	}
}

// requireIdle waits until Idle reports want.
func requireIdle(t *testing.T, h *Hub, want bool, why string) {
	t.Helper()
	require.Eventually(t, func() bool {
		idle, err := h.Idle(t.Context())
		return assert.NoError(t, err) && idle == want
	}, time.Minute, time.Millisecond, why)
}

func TestIdle(t *testing.T) {
	release := make(chan struct{})
	var daemon catalog.Daemon
	h := openHub(t, database(t), func(ctx context.Context, x *fakeTurn) catalog.ExecutePromptResult {
		daemon = x.daemon
		return worksUntil(ctx, release)
	}, func(o *Options) { o.Limits.MaxTurns = 1 })
	requireIdle(t, h, true, "nothing was begun")
	s := launch(t, h, "one")
	requireIdle(t, h, false, "a turn is active")
	release <- struct{}{}
	s = await(t, h, s)
	requireIdle(t, h, true, "it has ended")

	background := func(tasks ...domain.BackgroundTask) {
		require.NoError(t, daemon.ReportSession(t.Context(), catalog.ReportSessionParams{
			SessionID: s.Session.UUID, TaskID: s.UUID, Session: catalog.Session{Background: append([]domain.BackgroundTask{}, tasks...)},
		}))
	}
	background(domain.BackgroundTask{ID: "b", Title: "make"})
	requireIdle(t, h, false, "its agent works in the background")
	background()
	requireIdle(t, h, true, "that has ended")
}

func TestWhatClientsHaveBegunIsInterrupted(t *testing.T) {
	h := openHub(t, database(t), hang)
	of := map[string]domain.State{domain.SourceSession: domain.Interrupted, domain.SourceTask: domain.Interrupted, domain.SourceTrigger: domain.Running}
	turns := map[string]domain.TurnInSession{}
	for source := range of {
		s := must(h.Launch(t.Context(), LaunchSpec{Prompt: source, Source: source}))(t)
		turns[source] = inState(t, h, s, domain.Running)
	}
	h.InterruptWork(t.Context(), "alone")
	for source, want := range of {
		s := inState(t, h, turns[source], want)
		assert.Equal(t, want, s.Turn.State, source)
	}
}

func TestAHubWithATriggerIsNotIdle(t *testing.T) {
	r := rules(config.Trigger{ID: "mend", Type: "turn.failed", Action: notifies})
	h := openHub(t, database(t), answers, r.option)
	executed(t, h)
	requireIdle(t, h, false, "a trigger is on")
	require.NoError(t, h.Triggers().SwitchAll(t.Context(), false))
	requireIdle(t, h, true, "none is")
}

// A hub without writes notices that its files were removed when the system notifies it, or by
// polling. A false notification has no effect.
func TestLossOfAnIdleHub(t *testing.T) {
	for name, reported := range map[string]bool{"told": true, "not told": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var gone atomic.Bool
				var removed chan struct{}
				if reported {
					removed = make(chan struct{}, 1)
				}
				looks := make(chan struct{}, 100)
				lost := make(chan error, 1)
				wrong := errors.New("the lock was removed")
				h := openHub(t, database(t), hang, func(o *Options) {
					o.Removed = removed
					fakeOf(o).valid = func() error {
						select {
						case looks <- struct{}{}:
						default:
						}
						if gone.Load() {
							return wrong
						}
						return nil
					}
					o.Lost = func(err error) { lost <- err }
				})
				if removed != nil {
					for len(looks) > 0 { // notifications from opening
						<-looks
					}
					removed <- struct{}{}
					<-looks
				}
				require.False(t, h.Health().Lost())
				gone.Store(true)
				if removed != nil {
					removed <- struct{}{}
				}
				select {
				case err := <-lost:
					require.ErrorIs(t, err, wrong)
				case <-time.After(within):
					require.Fail(t, "it does not look")
				}
				assert.True(t, h.Health().Lost())
				assert.Contains(t, strings.Join(h.Health().Issues(), "\n"), "was removed, moved or replaced")
				assert.ErrorContains(t, h.OrEnding(t.Context(), domain.ErrEnding), "was removed, moved or replaced", "a request that its end cuts short")
			})
		})
	}
}
