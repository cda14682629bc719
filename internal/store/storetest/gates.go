package storetest

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/store"
)

func testGateLoopOfEachRun(t *testing.T, k kind) {
	s := k.openNew(t)
	thread := NewThread(t, s, "")
	first, second, other := AddRun(t, s, thread.ID, domain.Completed), AddRun(t, s, thread.ID, domain.Running), AddRun(t, s, thread.ID, domain.Queued)
	l := domain.GateLoop{
		Thread: thread.ID, Run: first.ID, Gates: []domain.Gate{{Name: "make <test>"}, {Name: "tests", Configured: true}}, MaxIterations: 3, Iteration: 1, State: domain.LoopWorking,
	}
	Write(t, s, func(tx store.Tx) error { return tx.InsertGateLoop(&l) })
	assert.NotZero(t, l.ID)
	got, err := s.GateLoop(ctx, first.ID)
	require.NoError(t, err)
	assert.Equal(t, l, got)

	l.Run, l.Iteration, l.State, l.Reason = second.ID, 2, domain.LoopChecking, "r"
	l.Results = []domain.GateResult{
		{Gate: "tests", Passed: true, Duration: time.Second},
		{Gate: "make <test>", Reason: "exit status 1", Errors: 1, Warnings: 2, Output: "o", Findings: []domain.Diagnostic{{File: "f", Line: 1, Column: 2, Severity: "error", Message: "m", Source: "go"}}},
	}
	Write(t, s, func(tx store.Tx) error { return tx.UpdateGateLoop(l) })
	all, err := s.GateLoops(ctx, []int64{first.ID, second.ID, other.ID})
	require.NoError(t, err)
	assert.Equal(t, map[int64]domain.GateLoop{first.ID: l, second.ID: l}, all)
	_, err = s.GateLoop(ctx, other.ID)
	require.ErrorIs(t, err, store.ErrNotFound)
	checked, err := s.CheckedLoops(ctx)
	require.NoError(t, err)
	assert.Equal(t, []domain.GateLoop{l}, checked)

	// Deleting the conversation deletes its loops.
	Write(t, s, func(tx store.Tx) error { return tx.DeleteRuns(thread.ID, 0) })
	_, err = s.GateLoop(ctx, first.ID)
	require.ErrorIs(t, err, store.ErrNotFound)
	checked, err = s.CheckedLoops(ctx)
	require.NoError(t, err)
	assert.Empty(t, checked)
}

// No run begins in a conversation while its gates are checked.
func testNoRunStartsDuringGates(t *testing.T, k kind) {
	s := k.openNew(t)
	thread, elsewhere := NewThread(t, s, ""), NewThread(t, s, "")
	done := AddRun(t, s, thread.ID, domain.Completed)
	waits, free := AddRun(t, s, thread.ID, domain.Queued), AddRun(t, s, elsewhere.ID, domain.Queued)
	startable := func() (ids []int64) {
		list, err := s.Startable(ctx, 10)
		require.NoError(t, err)
		for _, one := range list {
			ids = append(ids, one.Run.ID)
		}
		return ids
	}
	l := domain.GateLoop{Thread: thread.ID, Run: done.ID, MaxIterations: 1, Iteration: 1, State: domain.LoopChecking}
	Write(t, s, func(tx store.Tx) error { return tx.InsertGateLoop(&l) })
	assert.Equal(t, []int64{free.ID}, startable())
	l.State = domain.LoopPassed
	Write(t, s, func(tx store.Tx) error { return tx.UpdateGateLoop(l) })
	assert.Equal(t, []int64{waits.ID, free.ID}, startable())
}

func testHasDenied(t *testing.T, k kind) {
	s := k.openNew(t)
	run := AddRun(t, s, NewThread(t, s, "").ID, domain.Running)
	for i, c := range []struct {
		status, by string
		has        bool
	}{{domain.ApprovalApproved, domain.DecidedByUser, false}, {domain.ApprovalDenied, "rule=user", false}, {domain.ApprovalDenied, domain.DecidedByUser, true}} {
		id := string(rune('a' + i))
		Write(t, s, func(tx store.Tx) error {
			return tx.InsertApproval(&domain.Approval{ID: id, CallID: id, Thread: run.Thread, Run: run.ID, Type: domain.FunctionCall, Status: c.status, DecidedBy: c.by})
		})
		has, err := s.HasDenied(ctx, run.ID)
		require.NoError(t, err)
		assert.Equal(t, c.has, has)
	}
}
