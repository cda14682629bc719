package storetest

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/store"
)

func testChangeDecisions(t *testing.T, k kind) {
	s := k.openNew(t)
	thread := NewThread(t, s, "")
	run, other := AddRun(t, s, thread.ID, domain.Completed), AddRun(t, s, thread.ID, domain.Completed)
	decisions := func(run int64) []domain.ChangeDecision {
		list, err := s.ChangeDecisions(ctx, run)
		require.NoError(t, err)
		return list
	}
	put := func(d domain.ChangeDecision) domain.ChangeDecision {
		Write(t, s, func(tx store.Tx) error { return tx.PutChangeDecision(d) })
		return d
	}
	assert.Empty(t, decisions(run.ID))
	put(domain.ChangeDecision{Run: run.ID, Part: "b", State: domain.ChangeAccepted})
	b := put(domain.ChangeDecision{Run: run.ID, Part: "b", State: domain.ChangeReverted, Mode: 0o755})
	a := put(domain.ChangeDecision{Run: run.ID, Part: "a", State: domain.ChangeAccepted})
	others := put(domain.ChangeDecision{Run: other.ID, Part: "a", State: domain.ChangeAccepted})
	assert.Equal(t, []domain.ChangeDecision{a, b}, decisions(run.ID))
	put(domain.ChangeDecision{Run: run.ID, Part: "a", State: domain.ChangeOpen})
	assert.Equal(t, []domain.ChangeDecision{b}, decisions(run.ID))
	assert.Equal(t, []domain.ChangeDecision{others}, decisions(other.ID))

	Write(t, s, func(tx store.Tx) error { return tx.DeleteRuns(thread.ID, run.ID) })
	assert.Equal(t, []domain.ChangeDecision{b}, decisions(run.ID))
	assert.Empty(t, decisions(other.ID), "they have gone with their run")
}
