package sqlite

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/store"
)

func TestASnapshotIsReadAndChangesNothing(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "duet.db")
	refusal := errors.New("no hub runs")
	set := func(value string) func(store.Tx) error {
		return func(tx store.Tx) error { return tx.SetMeta("test", value) }
	}
	original, err := Open(t.Context(), path, store.Options{})
	require.NoError(t, err)
	require.NoError(t, original.Write(t.Context(), set("one")))
	// Beside whoever has it open, with what is in its log alone.
	s, err := OpenSnapshot(t.Context(), path, store.Options{}, refusal)
	require.NoError(t, err)
	require.NoError(t, original.Write(t.Context(), set("two")))
	value, err := s.Meta(t.Context(), "test")
	require.NoError(t, err)
	assert.Equal(t, "one", value)
	assert.Equal(t, refusal, s.Write(t.Context(), set("three")))
	done := make(chan error, 1)
	s.Enqueue(set("four"), func(err error) { done <- err })
	assert.Equal(t, refusal, <-done)
	_, err = s.Search(t.Context(), "anything", 1, 0)
	require.NoError(t, err)
	require.NoError(t, s.Close())
	left, err := filepath.Glob(filepath.Join(dir, snapshotNames))
	require.NoError(t, err)
	assert.Empty(t, left)
	value, err = original.Meta(t.Context(), "test")
	require.NoError(t, err)
	assert.Equal(t, "two", value)
	require.NoError(t, original.Close())
}

func TestASnapshotThatWasLeftIsRemoved(t *testing.T) {
	dir := t.TempDir()
	old, young := filepath.Join(dir, ".snapshot-1"), filepath.Join(dir, ".snapshot-2")
	require.NoError(t, os.Mkdir(old, 0o700))
	require.NoError(t, os.Mkdir(young, 0o700))
	past := time.Now().Add(-2 * snapshotLeft)
	require.NoError(t, os.Chtimes(old, past, past))
	removeOldSnapshots(dir)
	assert.NoDirExists(t, old)
	assert.DirExists(t, young)
}
