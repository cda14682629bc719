package sqlite

import (
	"errors"
	"path/filepath"
	"testing"

	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/store"
	"github.com/duet-rpc/duet-rpc/internal/store/storetest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestTaskNumbersAreNeverUsedAgain(t *testing.T) {
	path := filepath.Join(t.TempDir(), "duet.db")
	s := openAt(t, path)
	th := storetest.NewThread(t, s, "")
	assert.Equal(t, "task-0001", domain.TaskName(storetest.AddRun(t, s, th.ID, domain.Queued).Task))
	err := s.Write(ctx, func(tx store.Tx) error {
		r := storetest.NewRun(th.ID, domain.Queued)
		if err := tx.InsertRun(&r); err != nil {
			return err
		}
		return errors.New("aborted")
	})
	require.EqualError(t, err, "aborted")
	second := storetest.AddRun(t, s, th.ID, domain.Queued)
	assert.EqualValues(t, 2, second.Task, "one that nobody was told does not count")
	storetest.Write(t, s, func(tx store.Tx) error {
		_, err := tx.(*Tx).exec("DELETE FROM runs WHERE id = ?", second.ID)
		return err
	})
	require.NoError(t, s.Close())
	s = openAt(t, path)
	third := storetest.AddRun(t, s, th.ID, domain.Queued)
	assert.EqualValues(t, 3, third.Task)
	assert.Equal(t, third.ID, third.Task)
	assert.Equal(t, "task-12345", domain.TaskName(12345))
}

func TestACallThatSeveralApprovalsHaveIsNotGuessed(t *testing.T) {
	s := openNew(t)
	set := func(what string) {
		storetest.Write(t, s, func(tx store.Tx) error {
			_, err := tx.(*Tx).exec("UPDATE approvals SET " + what)
			return err
		})
	}
	for _, id := range []string{"a0", "a1", "a2"} {
		storetest.Write(t, s, func(tx store.Tx) error {
			return tx.InsertApproval(&domain.Approval{ID: id, CallID: "call", Status: domain.ApprovalPending})
		})
	}
	set("call_id = 'call'") // as they were once
	_, err := s.Approval(ctx, "call")
	assert.ErrorIs(t, err, store.ErrAmbiguous)
	set("status = 'denied' WHERE id != 'a1'")
	a, err := s.Approval(ctx, "call")
	require.NoError(t, err)
	assert.Equal(t, "a1", a.ID, "the only one that waits")
	set("status = 'denied'")
	_, err = s.Approval(ctx, "call")
	assert.ErrorIs(t, err, store.ErrAmbiguous)
}
