package storetest

import (
	"encoding/json"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/store"
)

func testUsage(t *testing.T, k kind) {
	s := k.openNew(t)
	one, other := NewSession(t, s, ""), NewSession(t, s, "")
	day := time.Date(2026, 3, 1, 12, 0, 0, 0, time.Local)
	used := func(at time.Time, agent, model string, cost float64) func(*domain.Turn) {
		return func(r *domain.Turn) {
			r.Created, r.Agent, r.Model = at, agent, model
			r.Started, r.Ended = at.Add(time.Second), at.Add(11*time.Second)
			r.Tokens = domain.Tokens{Input: 10, Output: 1, CacheRead: 5, CacheWrite: 2, CostUSD: cost, ContextUsed: 99}
		}
	}
	add := func(session int64, state domain.State, change func(*domain.Turn)) domain.Turn {
		turn := AddTurn(t, s, session, state, change)
		change(&turn)
		Write(t, s, func(tx store.Tx) error { return tx.UpdateTurn(turn) })
		return turn
	}
	first := add(one.ID, domain.Completed, used(day, "a", "m", 0.5))
	second := add(one.ID, domain.Interrupted, func(r *domain.Turn) {
		used(day.Add(24*time.Hour), "a", "m", 0.25)(r)
		r.ErrorCode = domain.CodeSessionBudget
		r.Ended, r.ClockOff = r.Ended.Add(5*time.Hour), 5*time.Hour // the clock was set forward
	})
	running := add(other.ID, domain.Running, func(r *domain.Turn) {
		used(day.Add(24*time.Hour), "b", "", 2)(r)
		r.Ended = time.Time{}
	})
	add(other.ID, domain.Draft, used(day, "b", "", 100))
	waited := domain.Approval{
		ID: "q", Session: one.ID, Turn: first.ID, Type: domain.FunctionCall, CallID: "c", Tool: "t", Input: json.RawMessage("{}"),
		Status:  domain.ApprovalApproved,
		Created: day.Add(2 * time.Second), Decided: day.Add(8 * time.Second),
	}
	set := waited
	set.ID, set.CallID, set.Created, set.Decided = "set", "set", day, day.Add(-3*time.Hour) // the clock was set back meanwhile
	Write(t, s, func(tx store.Tx) error { return tx.InsertApproval(&set) })
	Write(t, s, func(tx store.Tx) error { return tx.UpdateApproval(set) })
	Write(t, s, func(tx store.Tx) error { return tx.InsertApproval(&waited) })
	Write(t, s, func(tx store.Tx) error { return tx.UpdateApproval(waited) })

	now := running.Started.Add(time.Minute)
	usage := func(f domain.UsageFilter) domain.Usage {
		t.Helper()
		u, err := s.Usage(ctx, f, now)
		require.NoError(t, err)
		return u
	}
	sum := func(turns int, cost float64, took time.Duration) domain.Usage {
		n := int64(turns)
		return domain.Usage{
			Turns: turns, Tokens: domain.Tokens{Input: 10 * n, Output: n, CacheRead: 5 * n, CacheWrite: 2 * n, CostUSD: cost}, Time: took,
		}
	}
	assert.Equal(t, sum(3, 2.75, 4*time.Second+10*time.Second+time.Minute), usage(domain.UsageFilter{}),
		"without what was waited for a person, and without drafts")
	assert.Equal(t, sum(2, 0.75, 14*time.Second), usage(domain.UsageFilter{Session: one.ID}))
	assert.Equal(t, sum(1, 0.25, 10*time.Second), usage(domain.UsageFilter{Session: one.ID, After: first.ID}))
	assert.Equal(t, sum(1, 0.5, 4*time.Second), usage(domain.UsageFilter{Til: day.Add(24 * time.Hour)}))
	assert.Equal(t, sum(2, 2.25, 10*time.Second+time.Minute), usage(domain.UsageFilter{Since: day.Add(24 * time.Hour)}))
	assert.Equal(t, domain.Usage{}, usage(domain.UsageFilter{Since: day.Add(48 * time.Hour)}))

	by := func(by domain.UsageBy) (keys []string, costs []float64) {
		t.Helper()
		rows, err := s.UsageBy(ctx, domain.UsageFilter{}, by, now)
		require.NoError(t, err)
		for _, row := range rows {
			keys, costs = append(keys, row.Key), append(costs, row.Tokens.CostUSD)
		}
		return keys, costs
	}
	keys, costs := by(domain.UsageByDay)
	assert.Equal(t, []string{"2026-03-02", "2026-03-01"}, keys)
	assert.Equal(t, []float64{2.25, 0.5}, costs)
	keys, _ = by(domain.UsageByAgent)
	assert.Equal(t, []string{"b", "a"}, keys, "what costs most comes first")
	keys, costs = by(domain.UsageByModel)
	assert.Equal(t, []string{"", "m"}, keys)
	assert.Equal(t, []float64{2, 0.75}, costs)
	keys, _ = by(domain.UsageBySession)
	assert.Equal(t, []string{strconv.FormatInt(other.ID, 10), strconv.FormatInt(one.ID, 10)}, keys)

	for code, want := range map[string]int64{domain.CodeSessionBudget: second.ID, domain.CodeDayBudget: 0} {
		last, err := s.LastWith(ctx, one.ID, code)
		require.NoError(t, err)
		assert.Equal(t, want, last)
	}
}
