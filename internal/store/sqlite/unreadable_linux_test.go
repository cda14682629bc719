package sqlite

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/store"
)

// A database on a disk that fails is not called damaged: a user who moves it away loses it.
func TestADatabaseThatCannotBeRead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "duet.db")
	require.NoError(t, os.Symlink("/proc/self/mem", path)) // whose reading fails with EIO
	for name, err := range map[string]error{
		"Open":  errorOf(Open(t.Context(), path, store.Options{})),
		"Check": Check(t.Context(), path),
	} {
		var failed *OpenError
		require.ErrorAs(t, err, &failed, name)
		assert.Equal(t, "unreadable", failed.Reason, name)
		require.ErrorIs(t, err, syscall.EIO, name)
		assert.NotContains(t, err.Error(), "move it away", name)
	}
}

func errorOf[T any](_ T, err error) error { return err }
