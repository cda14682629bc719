//go:build unix

package preview

import (
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/config"
)

func TestAPipeIsNoFile(t *testing.T) {
	root := t.TempDir()
	write(t, root, map[string]string{"dist/index.html": "home"})
	require.NoError(t, syscall.Mkfifo(filepath.Join(root, "dist", "pipe.txt"), 0o600))
	r, err := showing(root, "dist").Fetch(t.Context(), "/pipe.txt", "", most)
	require.NoError(t, err)
	assert.Equal(t, 404, r.Status)
	dir := "dist"
	s, err := open(root, config.Preview{Directory: &dir})
	require.NoError(t, err)
	defer s.close()
	_, err = s.read("pipe.txt", most) // it replaced a file
	assert.Error(t, err)
}
