package registry

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A short archive may name very many directories.
func TestDirectoriesOfPathsCount(t *testing.T) {
	dir := t.TempDir()
	root, err := os.OpenRoot(dir)
	require.NoError(t, err)
	defer root.Close()
	u := &unpacking{ctx: t.Context(), root: root, bytes: 1 << 20, files: 100, made: map[string]bool{".": true}}
	for range 10 {
		require.NoError(t, u.take("a/b", fs.ModeDir, strings.NewReader("")))
	}
	for n := 0; err == nil; n++ {
		err = u.take(fmt.Sprintf("%d/%sf", n, strings.Repeat("d/", 20)), 0, strings.NewReader(""))
	}
	assert.ErrorContains(t, err, "files and directories")
	made := 0
	require.NoError(t, filepath.WalkDir(dir, func(string, fs.DirEntry, error) error { made++; return nil }))
	assert.LessOrEqual(t, made, 100)
}
