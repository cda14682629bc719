package sqlite

import (
	"testing"

	"github.com/duet-rpc/duet-rpc/internal/store"
	"github.com/duet-rpc/duet-rpc/internal/store/storetest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestFullDiskChangesNothing(t *testing.T) {
	s := openNew(t)
	storetest.Write(t, s, storetest.AppendEvent("before"))
	storetest.Write(t, s, func(store.Tx) error { // on the writer's own connection
		_, err := s.writer.conn.ExecContext(ctx, "PRAGMA max_page_count = 1") // no more pages than now
		return err
	})
	big := make([]byte, 1<<20)
	for i := range big {
		big[i] = 'x'
	}
	others := make(chan error, 2)
	begun, release := storetest.Held(s)
	<-begun
	s.Enqueue(storetest.AppendEvent("beside"), func(err error) { others <- err })
	full := make(chan error, 1)
	s.Enqueue(func(tx store.Tx) error {
		tx.AfterCommit(func() { t.Error("it was not committed") })
		return tx.SetMeta("big", string(big))
	}, func(err error) { full <- err })
	release()
	err := <-full
	require.Error(t, err)
	assert.True(t, store.IsFull(err), err)
	assert.False(t, store.IsDamaged(err))
	assert.True(t, store.IsFull(<-others), "what shared the transaction was not kept, and gets that error")

	_, err = s.writer.conn.ExecContext(ctx, "PRAGMA max_page_count = 1000000")
	require.NoError(t, err)
	storetest.Write(t, s, func(tx store.Tx) error { return tx.SetMeta("big", string(big)) })
	storetest.Write(t, s, storetest.AppendEvent("after"))
	storetest.RequireGapless(t, storetest.AllEvents(t, s), 2)
	assert.False(t, store.IsFull(nil))
	assert.False(t, store.IsFull(store.ErrNotFound))
	assert.NotZero(t, s.FreeBytes())
}

// Only Write waits for the disk.
func TestApplyDoesNotSync(t *testing.T) {
	s := openNew(t)
	storetest.Write(t, s, storetest.AppendEvent("with numbers for the next"))
	require.NoError(t, s.Apply(ctx, storetest.AppendEvent("a")))
	require.NoError(t, s.Close())
	assert.False(t, s.writer.full)

	s = openNew(t)
	require.NoError(t, s.Apply(ctx, storetest.AppendEvent("a")))
	storetest.Write(t, s, storetest.AppendEvent("b"))
	require.NoError(t, s.Close())
	assert.True(t, s.writer.full)
}
