package project

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Inside the package because root may write everywhere.
func TestWhereTheRootCannotBeWritten(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	root, state := filepath.Join(dir, "root"), filepath.Join(dir, "state")
	require.NoError(t, os.Mkdir(root, 0o700))
	canWrite := map[string]bool{}
	f := finder{
		getenv:   func(name string) string { return map[string]string{"XDG_STATE_HOME": state}[name] },
		writable: func(dir string) bool { return canWrite[dir] },
	}

	p, err := f.find(root)
	require.NoError(t, err)
	assert.Equal(t, filepath.Join(state, "duet"), filepath.Dir(p.StateDir))
	require.NoError(t, p.Prepare())

	other, err := f.find(dir)
	require.NoError(t, err)
	assert.NotEqual(t, p.StateDir, other.StateDir, "another root has other state")

	require.NoError(t, os.Mkdir(filepath.Join(root, ".duet"), 0o700))
	canWrite[filepath.Join(root, ".duet")] = true
	p, err = f.find(root)
	require.NoError(t, err)
	assert.Equal(t, filepath.Join(root, ".duet"), p.StateDir, "a state directory that can be written is enough")
}
