package checkpoint_test

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/checkpoint"
)

// A disk that fails for a moment does not hide the checkpoints: Open fails, and begins no other store.
func TestAFileThatCannotBeRead(t *testing.T) {
	t.Parallel()
	w := newRepository(t, map[string]string{"a": "1\n"}).open()
	taken, err := w.Take(t.Context(), "before")
	require.NoError(t, err)
	ids, err := filepath.Glob(filepath.Join(w.state, "shared-*", "id"))
	require.NoError(t, err)
	require.Len(t, ids, 1)
	for _, path := range []string{ids[0], filepath.Join(w.dir, ".git", "config")} {
		aside := filepath.Join(w.home, "aside")
		require.NoError(t, os.Rename(path, aside))
		require.NoError(t, os.Symlink("/proc/self/mem", path)) // whose reading fails with EIO
		_, err = checkpoint.Open(t.Context(), w.opts)
		require.ErrorIs(t, err, syscall.EIO, path)
		assert.ErrorContains(t, err, path)
		require.NoError(t, os.Rename(aside, path))
		list, err := w.open().List(t.Context())
		require.NoError(t, err)
		require.Len(t, list, 1, path)
		assert.Equal(t, taken.ID, list[0].ID)
	}
}
