package hub

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/config"
	"github.com/duet-rpc/duet-rpc/internal/domain"
)

func limited(b config.Budget) func(*Options) {
	return func(o *Options) {
		fakeOf(o).budget = func() config.Budget { return b }
		o.Removed = make(chan struct{}) // otherwise the hub polls each second of the days that pass here
	}
}

// uses reports the cost and tokens of a turn, and waits to be interrupted if they exceed the
// budget.
func uses(ctx context.Context, x *fakeTurn, dollars float64, input, output int64) catalog.ExecutePromptResult {
	x.report(catalog.EventUsage, catalog.Usage{TokenUsage: catalog.TokenUsage{InputTokens: input, OutputTokens: output}, CostUSD: dollars})
	if strings.Contains(x.p.Prompt, "too much") {
		<-ctx.Done()
		return catalog.ExecutePromptResult{Status: catalog.StatusCancelled}
	}
	return completed
}

// warnings returns the notices in the session of a turn.
func warnings(t *testing.T, h *Hub, s domain.TurnInSession) (list []string) {
	t.Helper()
	items := must(h.store.ItemsOfTurn(t.Context(), s.Turn.ID))(t)
	for _, i := range items {
		if i.Kind == domain.ItemSystem {
			list = append(list, i.Content)
		}
	}
	return list
}

func TestATurnThatCostsTooMuchIsInterruptedAndGoesOn(t *testing.T) {
	most := 1.0
	h := openHub(t, database(t), func(ctx context.Context, x *fakeTurn) catalog.ExecutePromptResult {
		x.report(catalog.EventUsage, catalog.Usage{CostUSD: 0.79})
		x.report(catalog.EventUsage, catalog.Usage{CostUSD: 0.8})
		x.report(catalog.EventUsage, catalog.Usage{CostUSD: 0.9})
		if strings.Contains(x.p.Prompt, "too much") {
			return uses(ctx, x, 1.25, 0, 0)
		}
		return completed
	}, limited(config.Budget{Turn: config.BudgetLimits{Cost: &most}}))
	s := launch(t, h, "too much")
	s = await(t, h, s)
	assert.Equal(t, []any{domain.Interrupted, domain.CodeTurnBudget}, []any{s.State, s.ErrorCode})
	assert.Equal(t, "this turn has cost $1.25, of $1.00 that there may be; raise [budget.turn] cost, or continue it: then a new account begins", s.Error)
	assert.Equal(t, []string{"This turn has cost $0.80 of $1.00 ([budget.turn] cost); the turn is interrupted when that is reached."}, warnings(t, h, s), "it is reported once")

	s = must(h.Continue(t.Context(), ContinueSpec{From: s.UUID, Prompt: "and now", Source: domain.SourceSession}))(t)
	assert.Equal(t, domain.Completed, await(t, h, s).State)
}

func TestTheBudgetOfASession(t *testing.T) {
	most := 100
	h := openHub(t, database(t), func(ctx context.Context, x *fakeTurn) catalog.ExecutePromptResult { return uses(ctx, x, 0, 20, 25) },
		limited(config.Budget{Session: config.BudgetLimits{Tokens: &most}}))
	other := await(t, h, launch(t, h, "another session"))
	s := await(t, h, launch(t, h, "one"))
	goOn := func(prompt string) domain.TurnInSession {
		next := must(h.Continue(t.Context(), ContinueSpec{From: s.UUID, Prompt: prompt, Source: domain.SourceSession}))(t)
		return await(t, h, next)
	}
	s = goOn("two")
	assert.Equal(t, domain.Completed, s.State)
	s = goOn("too much")
	assert.Equal(t, []any{domain.Interrupted, domain.CodeSessionBudget}, []any{s.State, s.ErrorCode})
	assert.Equal(t, "this session has used 135 tokens, of 100 that there may be; raise [budget.session] tokens, or continue it: then a new account begins", s.Error)
	s = goOn("four") // the third no longer counts
	assert.Equal(t, domain.Completed, s.State)
	assert.Equal(t, domain.Completed, other.State)
}

func TestTheBudgetOfADay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(12 * time.Hour) // noon
		most, prompts := 1.0, 4
		h := openHub(t, database(t), func(ctx context.Context, x *fakeTurn) catalog.ExecutePromptResult { return uses(ctx, x, 0.6, 0, 0) },
			limited(config.Budget{Day: config.BudgetLimits{Cost: &most, Turns: &prompts}}))
		assert.Equal(t, domain.Completed, await(t, h, launch(t, h, "one")).State)
		s := await(t, h, launch(t, h, "too much"))
		assert.Equal(t, []any{domain.Interrupted, domain.CodeDayBudget}, []any{s.State, s.ErrorCode})
		assert.Equal(t, "the turns of this day have cost $1.20, of $1.00 that there may be; raise [budget.day] cost, or continue it tomorrow", s.Error)
		_, err := h.Launch(t.Context(), LaunchSpec{Prompt: "p", Source: domain.SourceTask})
		assert.Equal(t, domain.KindBudget, kindOf(t, err))
		assert.EqualError(t, err, "the turns of this day have cost $1.20, of $1.00 that there may be; nothing more is begun today, unless [budget.day] cost is raised")
		_, err = h.Continue(t.Context(), ContinueSpec{From: s.UUID, Prompt: "q", Source: domain.SourceSession})
		assert.Equal(t, domain.KindBudget, kindOf(t, err))
		time.Sleep(12*time.Hour + time.Minute)
		assert.Equal(t, domain.Completed, await(t, h, launch(t, h, "tomorrow")).State)
	})
}

func TestATurnMayTakeSoManyRounds(t *testing.T) {
	turns := 3
	var begun int
	h := openHub(t, database(t), func(ctx context.Context, x *fakeTurn) catalog.ExecutePromptResult {
		for round := range 5 {
			for _, call := range []string{"a", "b"} { // two concurrent calls are one round
				x.report(catalog.EventToolCall, catalog.ToolCall{ToolID: call + string(rune('0'+round)), Tool: "Read", Input: encode(round)})
			}
			begun = round + 1
			if ctx.Err() != nil {
				break
			}
			for _, call := range []string{"a", "b"} {
				x.report(catalog.EventToolResult, catalog.ToolCall{ToolID: call + string(rune('0'+round)), Result: encode("x")})
			}
		}
		<-ctx.Done()
		return catalog.ExecutePromptResult{Status: catalog.StatusCancelled}
	}, limited(config.Budget{}))
	s := must(h.Launch(t.Context(), LaunchSpec{Prompt: "p", Source: domain.SourceSession, Settings: domain.Settings{MaxTurns: turns}}))(t)
	s = await(t, h, s)
	assert.Equal(t, domain.CodeTurnBudget, s.ErrorCode)
	assert.Equal(t, "this turn has had 3 rounds of tool calls, of 3 rounds that there may be; give it more with prompt --max-turns, or continue it: then a new account begins", s.Error)
	assert.GreaterOrEqual(t, begun, 4)
}

func TestTheSameCallOverAndOver(t *testing.T) {
	agent := func(ctx context.Context, x *fakeTurn) catalog.ExecutePromptResult {
		for i := 0; i < 60 && ctx.Err() == nil; i++ {
			input := "ls"
			if strings.Contains(x.p.Prompt, "other") && i%4 == 3 {
				input = "pwd"
			}
			id := fmt.Sprint(i)
			if strings.Contains(x.p.Prompt, "untold") {
				x.report(catalog.EventToolResult, catalog.ToolCall{ToolID: id, Tool: "Bash", Result: encode("x")})
				continue
			}
			x.report(catalog.EventToolCall, catalog.ToolCall{ToolID: id, Tool: "Bash"}) // the input comes later
			x.report(catalog.EventToolUpdate, catalog.ToolCall{ToolID: id, Input: encode(map[string]string{"command": input})})
			x.report(catalog.EventToolResult, catalog.ToolCall{ToolID: id, Result: encode("x")})
		}
		if ctx.Err() == nil && !strings.Contains(x.p.Prompt, "for ever") {
			return completed
		}
		<-ctx.Done()
		return catalog.ExecutePromptResult{Status: catalog.StatusCancelled}
	}
	repeats := 5
	h := openHub(t, database(t), agent, limited(config.Budget{Turn: config.BudgetLimits{Repeats: &repeats}}))
	s := await(t, h, launch(t, h, "for ever"))
	assert.Equal(t, []any{domain.Interrupted, domain.CodeTurnBudget}, []any{s.State, s.ErrorCode})
	assert.Equal(t, "this turn has made the same call of Bash 5 times, of 5 times that there may be; raise [budget.turn] repeats, or continue it: then a new account begins", s.Error)
	assert.Equal(t, domain.Completed, await(t, h, launch(t, h, "other calls between them")).State)
	assert.Equal(t, domain.Completed, await(t, h, launch(t, h, "calls whose input is untold")).State)

	// Without a configured budget, only turns without a client are limited in number.
	h = openHub(t, database(t), agent, limited(config.Budget{}))
	assert.Equal(t, domain.Completed, await(t, h, launch(t, h, "p")).State)
	s = must(h.Launch(t.Context(), LaunchSpec{Prompt: "for ever", Source: domain.SourceTrigger}))(t)
	assert.Contains(t, await(t, h, s).Error, "the same call of Bash 50 times")
}

// Time spent waiting for a human does not count.
func TestTheTimeOfATurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		most := 10 * time.Minute
		h := openHub(t, database(t), func(ctx context.Context, x *fakeTurn) catalog.ExecutePromptResult {
			select {
			case <-time.After(5 * time.Minute):
			case <-ctx.Done():
				return catalog.ExecutePromptResult{Status: catalog.StatusCancelled}
			}
			if x.ask(ctx, "Edit", "x").Approved {
				<-ctx.Done()
			}
			return catalog.ExecutePromptResult{Status: catalog.StatusCancelled}
		}, limited(config.Budget{Turn: config.BudgetLimits{Time: &most}}))
		began := time.Now()
		s := launch(t, h, "p")
		time.Sleep(2 * time.Hour) // the approval stays open
		synctest.Wait()
		require.Equal(t, domain.WaitingInput, turnOf(t, h, s.UUID).State)
		open := must(h.store.PendingApprovals(t.Context(), s.Turn.ID))(t)
		require.Len(t, open, 1)
		approve(t, h, open[0], "")
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		s = await(t, h, s)
		assert.Equal(t, []any{domain.Interrupted, domain.CodeTurnBudget}, []any{s.State, s.ErrorCode}, s.Error)
		assert.InDelta(t, (2*time.Hour + 5*time.Minute).Seconds(), s.Ended.Sub(began).Seconds(), 5)
		require.Len(t, warnings(t, h, s), 1)
		assert.Contains(t, warnings(t, h, s)[0], "This turn has worked 8m of 10m")
	})
}
