package hub

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/config"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/protocol"
)

// A wallClock is a system clock that a test sets. Timers do not follow it.
type wallClock struct{ off atomic.Int64 }

// set sets the clock back, or forward.
func (c *wallClock) set(by time.Duration) { c.off.Add(int64(by)) }

func (c *wallClock) option(o *Options) {
	o.Now = func() time.Time { return time.Now().Add(time.Duration(c.off.Load())) }
	withoutPolling(o)
}

// A bypass is no longer than its time when the clock is set back, also before the process starts again.
func TestBypassEndsAlthoughTheClockWasSetBack(t *testing.T) {
	for name, restart := range map[string]bool{"in a process": false, "and started again": true} {
		t.Run(name, func(t *testing.T) {
			file := database(t)
			synctest.Test(t, func(t *testing.T) {
				clock := new(wallClock)
				h := openHub(t, file, askOnce, clock.option)
				first := launchIn(t, h, "a", "p")
				synctest.Wait()
				yes := true
				must(h.Settings().Update(context.Background(), first.HumanLayerSession, domain.SettingsChanged{SkipPermissions: &yes, SkipUntil: h.Latest().Add(time.Minute)}))(t)
				assert.Equal(t, "yes mode=bypassPermissions", await(t, h, first).Result)
				time.Sleep(30 * time.Second)
				clock.set(-5 * time.Hour)
				if restart {
					require.NoError(t, h.Close())
					h = openHub(t, file, askOnce, clock.option)
				}
				assert.Equal(t, "yes mode=bypassPermissions", await(t, h, launchIn(t, h, "a", "p")).Result)
				time.Sleep(time.Minute)
				launchIn(t, h, "a", "p")
				pendingOf(t, h, 1)
			})
		})
	}
}

// worksFor works for a time, and then waits to be interrupted or asks a question.
func worksFor(d time.Duration, asks bool) func(context.Context, *fakeTurn) catalog.ExecutePromptResult {
	return func(ctx context.Context, x *fakeTurn) catalog.ExecutePromptResult {
		select {
		case <-time.After(d):
		case <-ctx.Done():
			return catalog.ExecutePromptResult{Status: catalog.StatusCancelled}
		}
		if asks && !x.ask(ctx, "Edit", "x").Approved {
			return catalog.ExecutePromptResult{Status: catalog.StatusCancelled}
		}
		return completed
	}
}

// A clock that is set, or a machine that sleeps, during a turn changes neither how long it worked nor its
// time budget.
func TestTheTimeOfATurnWhoseClockIsSet(t *testing.T) {
	hour := time.Hour
	for name, by := range map[string]time.Duration{"forward, or asleep": 5 * time.Hour, "back": -5 * time.Hour, "not": 0} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				clock := new(wallClock)
				most := config.BudgetLimits{Time: &hour}
				h := openHub(t, database(t), worksFor(25*time.Minute, false), clock.option, limited(config.Budget{Turn: most, Session: most}))
				halfAnHourLater := func(s domain.TurnInSession) domain.TurnInSession {
					time.Sleep(30 * time.Minute)
					return await(t, h, s)
				}
				s := launchIn(t, h, "a", "p")
				time.Sleep(10 * time.Minute)
				clock.set(by)
				s = halfAnHourLater(s)
				assert.Equal(t, domain.Completed, s.State, s.Error)
				assert.InDelta(t, (25 * time.Minute).Milliseconds(), *protocol.DurationMS(s.Turn), 1000)
				used := must(h.store.Usage(t.Context(), domain.UsageFilter{}, time.Now()))(t)
				assert.InDelta(t, (25 * time.Minute).Seconds(), used.Time.Seconds(), 1)

				assert.Equal(t, domain.Completed, halfAnHourLater(launchIn(t, h, "a", "p")).State, "the session has 35 minutes left")
				s = halfAnHourLater(launchIn(t, h, "a", "p"))
				assert.Equal(t, []any{domain.Interrupted, domain.CodeSessionBudget}, []any{s.State, s.ErrorCode}, "its hour ends in this turn")
			})
		})
	}
}

// While the turn waits for a person, the clock may be set, too.
func TestTheTimeOfATurnThatWaitsWhileTheClockIsSet(t *testing.T) {
	most := 25 * time.Minute
	for name, by := range map[string]time.Duration{"forward, or asleep": 5 * time.Hour, "back": -5 * time.Hour} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				clock := new(wallClock)
				h := openHub(t, database(t), worksFor(20*time.Minute, true), clock.option, limited(config.Budget{Turn: config.BudgetLimits{Time: &most}}))
				s := launchIn(t, h, "a", "p")
				time.Sleep(30 * time.Minute)
				clock.set(by)
				time.Sleep(30 * time.Minute)
				approve(t, h, pendingOf(t, h, 1)[0], "")
				synctest.Wait()
				s = await(t, h, s)
				assert.Equal(t, domain.Completed, s.State, s.Error)
				assert.GreaterOrEqual(t, *protocol.DurationMS(s.Turn), int64(0))
			})
		})
	}
}

// What an agent reported last is known of it, also when the clock was set back meanwhile.
func TestTheLastReportOfAnAgentCountsAfterTheClockWasSetBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		clock := new(wallClock)
		h := openHub(t, database(t), func(_ context.Context, x *fakeTurn) catalog.ExecutePromptResult {
			x.report(catalog.EventSession, catalog.Session{Model: &catalog.Selection{Current: x.p.Prompt, Choices: []domain.Choice{{ID: x.p.Prompt}}}})
			return completed
		}, clock.option)
		for _, model := range []string{"old", "new"} {
			await(t, h, launchIn(t, h, model, model))
			clock.set(-5 * time.Hour)
		}
		known := must(h.Settings().OfAgent(t.Context(), ""))(t)
		assert.Equal(t, []string{"new"}, domain.IDs(known.Reported.Models.Choices))
	})
}

// The time in which no process ran is no working time of the turn whose process died.
func TestTheTimeOfATurnWhoseProcessDied(t *testing.T) {
	file, hour := database(t), time.Hour
	synctest.Test(t, func(t *testing.T) {
		limits := limited(config.Budget{Session: config.BudgetLimits{Time: &hour}})
		h := openHub(t, file, func(ctx context.Context, x *fakeTurn) catalog.ExecutePromptResult {
			time.Sleep(10 * time.Minute)
			x.report(catalog.EventToolCall, catalog.ToolCall{ToolID: "t", Tool: "Bash"})
			<-ctx.Done()
			return catalog.ExecutePromptResult{Status: catalog.StatusCancelled}
		}, limits)
		s := launchIn(t, h, "a", "p")
		time.Sleep(11 * time.Minute)
		require.NoError(t, h.store.Close()) // without the hub's knowledge
		h.cancel()
		time.Sleep(8 * time.Hour)

		h = openHub(t, file, worksFor(time.Second, false), limits)
		s = inState(t, h, s, domain.Interrupted)
		assert.Equal(t, "ORPHANED", s.ErrorCode)
		assert.InDelta(t, (10 * time.Minute).Milliseconds(), *protocol.DurationMS(s.Turn), 1000)
		assert.Equal(t, domain.Completed, await(t, h, launchIn(t, h, "a", "p")).State, "the session has 50 minutes left")
	})
}
