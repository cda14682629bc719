package storetest

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/store"
)

func testGateLoopOfEachTurn(t *testing.T, k kind) {
	s := k.openNew(t)
	session := NewSession(t, s, "")
	first, second, other := AddTurn(t, s, session.ID, domain.Completed), AddTurn(t, s, session.ID, domain.Running), AddTurn(t, s, session.ID,
		domain.Queued)
	l := domain.GateLoop{
		Session: session.ID, Turn: first.ID, Gates: []domain.Gate{{Name: "make <test>"}, {Name: "tests", Configured: true}}, MaxIterations: 3,
		Iteration: 1, State: domain.LoopWorking,
	}
	Write(t, s, func(tx store.Tx) error { return tx.InsertGateLoop(&l) })
	assert.NotZero(t, l.ID)
	got, err := s.GateLoop(ctx, first.ID)
	require.NoError(t, err)
	assert.Equal(t, l, got)

	l.Turn, l.Iteration, l.State, l.Reason = second.ID, 2, domain.LoopChecking, "r"
	l.Results = []domain.GateResult{
		{Gate: "tests", Passed: true, Duration: time.Second},
		{Gate: "make <test>", Reason: "exit status 1", Errors: 1, Warnings: 2, Output: "o", Findings: []domain.Diagnostic{{
			File: "f", Line: 1, Column: 2, Severity: "error", Message: "m", Source: "go",
		}}},
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

	// Deleting the session deletes its loops.
	Write(t, s, func(tx store.Tx) error { return tx.DeleteTurns(session.ID, 0) })
	_, err = s.GateLoop(ctx, first.ID)
	require.ErrorIs(t, err, store.ErrNotFound)
	checked, err = s.CheckedLoops(ctx)
	require.NoError(t, err)
	assert.Empty(t, checked)
}

// No turn begins in a session while its gates are checked.
func testNoTurnStartsDuringGates(t *testing.T, k kind) {
	s := k.openNew(t)
	session, elsewhere := NewSession(t, s, ""), NewSession(t, s, "")
	done := AddTurn(t, s, session.ID, domain.Completed)
	waits, free := AddTurn(t, s, session.ID, domain.Queued), AddTurn(t, s, elsewhere.ID, domain.Queued)
	startable := func() (ids []int64) {
		list, err := s.Startable(ctx, 10)
		require.NoError(t, err)
		for _, one := range list {
			ids = append(ids, one.Turn.ID)
		}
		return ids
	}
	l := domain.GateLoop{Session: session.ID, Turn: done.ID, MaxIterations: 1, Iteration: 1, State: domain.LoopChecking}
	Write(t, s, func(tx store.Tx) error { return tx.InsertGateLoop(&l) })
	assert.Equal(t, []int64{free.ID}, startable())
	l.State = domain.LoopPassed
	Write(t, s, func(tx store.Tx) error { return tx.UpdateGateLoop(l) })
	assert.Equal(t, []int64{waits.ID, free.ID}, startable())
}

func testHasDenied(t *testing.T, k kind) {
	s := k.openNew(t)
	turn := AddTurn(t, s, NewSession(t, s, "").ID, domain.Running)
	for i, c := range []struct {
		status, by string
		has        bool
	}{{domain.ApprovalApproved, domain.DecidedByUser, false}, {domain.ApprovalDenied, "rule=user", false}, {domain.ApprovalDenied, domain.DecidedByUser, true}} {
		id := string(rune('a' + i))
		Write(t, s, func(tx store.Tx) error {
			return tx.InsertApproval(&domain.Approval{
				ID: id, CallID: id, Session: turn.Session, Turn: turn.ID, Type: domain.FunctionCall, Status: c.status, DecidedBy: c.by,
			})
		})
		has, err := s.HasDenied(ctx, turn.ID)
		require.NoError(t, err)
		assert.Equal(t, c.has, has)
	}
}
