package sqlite

import (
	"bytes"
	"database/sql"
	"errors"
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

// What SQLite cannot read may pass; an impossible value does not.
func TestCheckOfAnOpenDatabase(t *testing.T) {
	path := filepath.Join(t.TempDir(), "duet.db")
	s, err := Open(t.Context(), path, store.Options{})
	require.NoError(t, err)
	require.NoError(t, s.Check(t.Context()))
	require.NoError(t, s.Close())

	f, err := os.OpenFile(path, os.O_RDWR, 0)
	require.NoError(t, err)
	info, err := f.Stat()
	require.NoError(t, err)
	const page = 4096
	kept := make([]byte, info.Size()-5*page)
	_, err = f.ReadAt(kept, 5*page)
	require.NoError(t, err)
	_, err = f.WriteAt(bytes.Repeat([]byte{0xff}, len(kept)), 5*page)
	require.NoError(t, err)
	readers, err := sql.Open("sqlite", dsn(path, "_pragma=query_only(1)"))
	require.NoError(t, err)
	defer readers.Close()
	damaged := &Store{readers: readers}
	err = damaged.Check(t.Context())
	require.ErrorIs(t, err, store.ErrUnread)
	assert.True(t, store.IsDamaged(err))

	_, err = f.WriteAt(kept, 5*page)
	require.NoError(t, errors.Join(err, f.Close()))
	assert.NotErrorIs(t, error(&damagedValueError{errors.New("no text")}), store.ErrUnread)
	assert.True(t, store.IsDamaged(&damagedValueError{errors.New("no text")}))
}

func errorOf[T any](_ T, err error) error { return err }
