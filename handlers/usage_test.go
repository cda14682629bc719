package handlers_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/duet-rpc/duet-rpc/frame"
	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/testkit"
)

func TestWhatTasksHaveUsed(t *testing.T) {
	w := newWorld(t, func(ctx context.Context, x *turn) catalog.ExecutePromptResult {
		x.report(catalog.EventUsage, catalog.Usage{TokenUsage: catalog.TokenUsage{InputTokens: 30, OutputTokens: 4}, CostUSD: 0.5})
		return done
	})
	c := w.connect(frame.LSP)
	one := testkit.JSONAs[string](t, c.ask("launchSession", `{"query":"q","title":"T"}`), "session_id")
	w.ended(one)
	w.ended(testkit.JSONAs[string](t, c.ask("task.submit", `{"prompt":"p"}`), "taskId"))

	all := c.ask("task.usage", `{}`)
	total := testkit.JSONAs[map[string]any](t, all, "total")
	assert.Equal(t, []any{2.0, 60.0, 8.0, 1.0}, []any{total["runs"], total["input_tokens"], total["output_tokens"], total["cost_usd"]})
	assert.NotContains(t, string(all), "rows")
	rows := testkit.JSONAs[[]any](t, c.ask("task.usage", `{"by":"session","session_id":"`+one+`"}`), "rows")
	assert.Len(t, rows, 1)
	assert.Equal(t, "T", rows[0].(map[string]any)["title"])
	assert.NotContains(t, string(c.ask("task.usage", `{"by":"day","until":"2001-01-01"}`)), "rows")
	for params, param := range map[string]string{`{"by":"week"}`: "by", `{"since":"yesterday"}`: "since", `{"until":"x"}`: "until"} {
		e := c.fail("task.usage", params)
		assert.Equal(t, []any{-32602, param}, []any{e.Code, e.Data["param"]})
	}
	assert.Equal(t, "task_not_found", c.fail("task.usage", `{"session_id":"nobody"}`).Data["kind"])
}

func TestALaunchHasABudget(t *testing.T) {
	w := newWorld(t, func(ctx context.Context, x *turn) catalog.ExecutePromptResult {
		x.report(catalog.EventUsage, catalog.Usage{CostUSD: 0.5})
		<-ctx.Done()
		return catalog.ExecutePromptResult{Status: catalog.StatusCancelled}
	})
	c := w.connect(frame.LSP)
	for _, launched := range []json.RawMessage{
		c.ask("launchSession", `{"query":"q","budget":{"cost_usd":0.5}}`), c.ask("task.submit", `{"prompt":"q","budget":{"cost_usd":0.4,"tokens":7}}`),
	} {
		s := w.ended(testkit.JSONAs[string](t, launched, "session_id"))
		assert.Equal(t, "RUN_BUDGET_REACHED", s.ErrorCode)
		next := w.ended(testkit.JSONAs[string](t, c.ask("continueSession", `{"session_id":"`+s.SessionID+`","query":"on"}`), "session_id"))
		assert.Equal(t, "RUN_BUDGET_REACHED", next.ErrorCode, "it is that of each run of the conversation")
	}
}
