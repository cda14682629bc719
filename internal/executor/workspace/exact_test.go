package workspace_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/executor/workspace"
)

// An agent that reports the deletion of a hook must not get one written by the user who reverts it.
func TestNoChangeIsRevertedInAGitDirectory(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	w := workspace.New(dir, dir, "")
	text := "#!/bin/sh\n"
	for _, name := range []string{".git/hooks/pre-commit", ".GIT/config", "nested/.git/hooks/pre-commit"} {
		path := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		require.ErrorIs(t, w.Replace(path, workspace.File{}, &text, 0o755), workspace.ErrGit)
		assert.NoFileExists(t, path)
		require.NoError(t, os.WriteFile(path, nil, 0o600))
		require.ErrorIs(t, w.SetExecutable(path, true), workspace.ErrGit)
	}
	require.NoError(t, w.Replace(filepath.Join(dir, "a"), workspace.File{}, &text, 0o755))
	assert.FileExists(t, filepath.Join(dir, "a"))
}
