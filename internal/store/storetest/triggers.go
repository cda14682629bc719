package storetest

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/store"
)

func testTriggerExecutions(t *testing.T, k kind) {
	s := k.openNew(t)
	whole := domain.TriggerExecution{
		Trigger: "t", Key: "seq:1", EventType: "turn.failed", EventSource: "turn", Event: json.RawMessage(`{"a":1}`), Time: time.Unix(5, 7).UTC(), Status: domain.TriggerWaiting,
		Action: "agent", Does: json.RawMessage(`{"type":"agent"}`), Turn: 3, Approval: "a", Depth: 2, Error: "e",
	}
	Write(t, s, func(tx store.Tx) error { return tx.InsertTriggerExecution(&whole) })
	assert.NotZero(t, whole.ID)
	again := whole
	require.Error(t, s.Write(ctx, func(tx store.Tx) error { return tx.InsertTriggerExecution(&again) }))
	has, err := s.HasTriggerExecution(ctx, "t", "seq:1")
	require.NoError(t, err)
	assert.True(t, has)
	has, err = s.HasTriggerExecution(ctx, "u", "seq:1")
	require.NoError(t, err)
	assert.False(t, has)

	list, err := s.TriggerExecutions(ctx, "", 10)
	require.NoError(t, err)
	assert.Equal(t, []domain.TriggerExecution{whole}, list)
	for i := range store.MostTriggerExecutions + 10 {
		Write(t, s, func(tx store.Tx) error {
			return tx.InsertTriggerExecution(&domain.TriggerExecution{Trigger: "many", Key: fmt.Sprint(i), Time: time.Unix(
				6, 0,
			), Status: domain.TriggerNotified, Event: json.RawMessage("{}"), Does: json.RawMessage("{}")})
		})
	}
	list, err = s.TriggerExecutions(ctx, "", 10_000)
	require.NoError(t, err)
	assert.Len(t, list, store.MostTriggerExecutions+1, "and what waits")
	open, err := s.OpenTriggerExecutions(ctx)
	require.NoError(t, err)
	assert.Equal(t, []domain.TriggerExecution{whole}, open)
	whole.Status, whole.Turn, whole.Approval, whole.Error = domain.TriggerDenied, 4, "b", "f"
	Write(t, s, func(tx store.Tx) error { return tx.UpdateTriggerExecution(whole) })
	open, err = s.OpenTriggerExecutions(ctx)
	require.NoError(t, err)
	assert.Empty(t, open)
	list, err = s.TriggerExecutions(ctx, "t", 1)
	require.NoError(t, err)
	assert.Equal(t, []domain.TriggerExecution{whole}, list)

	state, err := s.TriggerState(ctx, "t")
	require.NoError(t, err)
	assert.Equal(t, domain.TriggerState{Trigger: "t"}, state)
	for _, on := range []*bool{nil, new(bool)} {
		kept := domain.TriggerState{Trigger: "t", Enabled: on, Fired: time.Unix(
			1, 0,
		).UTC(), Looked: time.Unix(2, 0).UTC(), Window: time.Unix(3, 0).UTC(), Count: 4, Limited: "depth"}
		Write(t, s, func(tx store.Tx) error { return tx.PutTriggerState(kept) })
		state, err = s.TriggerState(ctx, "t")
		require.NoError(t, err)
		assert.Equal(t, kept, state)
	}
}
