package checkpoint_test

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/checkpoint"
	"github.com/duet-rpc/duet-rpc/internal/testkit"
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

// git status succeeds without the files of a directory that the disk fails to list. Such a checkpoint
// would have rewinding delete them.
func TestADirectoryThatGitCannotList(t *testing.T) {
	t.Parallel()
	for _, warning := range []string{"warning: could not open directory './': Input/output error", "a: Input/output error", "warning: unable to access '.gitignore': Too many open files"} {
		w := newRepository(t, map[string]string{"a": "1\n"})
		fails := filepath.Join(w.home, "fails")
		w.opts.Git = testkit.Program(t, filepath.Join(w.home, "git"), fmt.Sprintf(`#!/bin/sh
if [ "$1" = status ] && [ -e %q ]; then echo %q >&2; exit 0; fi
exec git "$@"
`, fails, warning))
		w.open()
		require.NoError(t, os.WriteFile(fails, nil, 0o600))
		_, err := w.Take(t.Context(), "one")
		require.ErrorContains(t, err, warning)
		require.NoError(t, os.Remove(fails))
		_, err = w.Take(t.Context(), "one")
		require.NoError(t, err)
	}
}
