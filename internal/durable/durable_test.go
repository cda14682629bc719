package durable_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/durable"
)

func TestReplace(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "b")
	path := filepath.Join(dir, "file")
	require.NoError(t, durable.MkdirAll(dir, 0o700))
	require.NoError(t, durable.MkdirAll(dir, 0o700))
	for _, text := range []string{"old", "new"} {
		require.NoError(t, durable.Replace(path, []byte(text), 0o640))
		got, err := os.ReadFile(path)
		require.NoError(t, err)
		assert.Equal(t, text, string(got))
	}
	info, err := os.Stat(path)
	require.NoError(t, err)
	assert.Equal(t, fs.FileMode(0o640), info.Mode().Perm())

	require.Error(t, durable.Replace(dir, []byte("x"), 0o600), "a directory is not replaced")
	require.NoError(t, durable.Remove(path))
	require.NoError(t, durable.Remove(path), "it is gone")
	require.NoError(t, durable.Remove(filepath.Join(dir, "none", "file")))
	left, err := filepath.Glob(filepath.Join(dir, "*"))
	require.NoError(t, err)
	hidden, err := filepath.Glob(filepath.Join(filepath.Dir(dir), ".*"))
	require.NoError(t, err)
	assert.Empty(t, append(left, hidden...))
}
