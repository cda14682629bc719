package worktree_test

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/testkit"
	"github.com/duet-rpc/duet-rpc/internal/worktree"
)

// unreadable is a file whose reading fails with EIO, as on a disk that fails.
const unreadable = "/proc/self/mem"

// A landing that has to stop because an index's lock cannot be read is finished by the next call.
func TestALockThatCannotBeReadIsNotLeft(t *testing.T) {
	t.Parallel()
	for name, gitDir := range map[string]string{"the user's tree": ".git", "the worktree": ".git/worktrees/one"} {
		w := newRepository(t, map[string]string{"a": "1\n"})
		lock, aside, once := filepath.Join(w.dir, gitDir, "index.lock"), filepath.Join(w.home, "aside"), filepath.Join(w.home, "once")
		w.opts.Git = testkit.Program(t, filepath.Join(w.home, "git"), fmt.Sprintf(`#!/bin/sh
git "$@" || exit
case "$GIT_DIR $*" in %[5]q*"update-ref"*"HEAD"*)
	if mkdir %[1]q 2>/dev/null; then mv %[2]q %[3]q && ln -s %[4]s %[2]q; fi
esac
`, once, lock, aside, unreadable, filepath.Join(w.dir, gitDir)+" "))
		made := w.create("one", map[string]string{"a": "2\n"})
		_, err := w.Land(t.Context(), made, worktree.LandOptions{Method: worktree.Merge})
		require.ErrorIs(t, err, syscall.EIO, name)
		assert.ErrorContains(t, err, lock)
		require.NoError(t, os.Rename(aside, lock)) // the disk works again

		w.land(made, worktree.Merge)
		assert.NoFileExists(t, lock)
		assert.Equal(t, "2\n", w.git("show", "HEAD:a"), name)
		for _, top := range []string{w.dir, made.Top} {
			assert.Empty(t, gitIn(t, top, "status", "--porcelain"), name)
		}
		w.healthy()
		_, err = w.Discard(t.Context(), made, worktree.DiscardOptions{})
		require.NoError(t, err, "nothing would be lost")
	}
}

// A worktree whose record cannot be read is not taken for a missing one.
func TestARecordThatCannotBeRead(t *testing.T) {
	t.Parallel()
	w := newRepository(t, map[string]string{"a": "1\n"})
	made := w.create("one", map[string]string{"a": "2\n"})
	record, aside := filepath.Join(w.dir, ".git", "worktrees", "one", "duet.json"), filepath.Join(w.home, "aside")
	require.NoError(t, os.Rename(record, aside))
	require.NoError(t, os.Symlink(unreadable, record))
	for name, do := range map[string]func() error{
		"land":    func() error { return errorOf(w.Land(t.Context(), made, worktree.LandOptions{Method: worktree.Merge})) },
		"discard": func() error { return errorOf(w.Discard(t.Context(), made, worktree.DiscardOptions{Force: true})) },
	} {
		err := do()
		require.ErrorIs(t, err, syscall.EIO, name)
		assert.ErrorContains(t, err, record, name)
	}
	require.NoError(t, os.Rename(aside, record))
	w.land(made, worktree.Merge)
	assert.Equal(t, "2\n", w.git("show", "HEAD:a"))
}

// A branch does not move below the files of a working tree whose HEAD cannot be read.
func TestAHeadThatCannotBeRead(t *testing.T) {
	t.Parallel()
	w := newRepository(t, map[string]string{"a": "1\n"})
	made := w.create("one", map[string]string{"a": "2\n"})
	w.git("checkout", "-q", "-b", "other")
	beside := filepath.Join(w.home, "beside")
	w.git("worktree", "add", "-q", beside, "main")
	head, aside := filepath.Join(w.dir, ".git", "worktrees", "beside", "HEAD"), filepath.Join(w.home, "aside")
	before := w.id(w.dir, "main")
	require.NoError(t, os.Rename(head, aside))
	require.NoError(t, os.Symlink(unreadable, head))
	err := errorOf(w.Land(t.Context(), made, worktree.LandOptions{Method: worktree.Merge, Into: "main"}))
	require.ErrorIs(t, err, syscall.EIO)
	assert.Equal(t, before, w.id(w.dir, "main"))
	require.NoError(t, os.Rename(aside, head))
	must(w.Land(t.Context(), made, worktree.LandOptions{Method: worktree.Merge, Into: "main"}))(t)
	assert.Empty(t, gitIn(t, beside, "status", "--porcelain"))
	assert.Equal(t, "2\n", string(must(os.ReadFile(filepath.Join(beside, "a")))(t)))
}

// A landing that the disk has hindered once, after the branch has moved, is finished at once: else the
// user's index would be locked.
func TestALandingIsFinishedAfterAFailure(t *testing.T) {
	t.Parallel()
	w := newRepository(t, map[string]string{"a": "1\n"})
	moved, failed := filepath.Join(w.home, "moved"), filepath.Join(w.home, "failed")
	w.opts.Git = testkit.Program(t, filepath.Join(w.home, "git"), fmt.Sprintf(`#!/bin/sh
case "$*" in *"rev-parse"*"HEAD^{commit}"*)
	if [ -e %[1]q ] && mkdir %[2]q 2>/dev/null; then echo "Input/output error" >&2; exit 128; fi
esac
git "$@" || exit
case "$*" in *"update-ref"*"HEAD"*) : >%[1]q; esac
`, moved, failed))
	made := w.create("one", map[string]string{"a": "2\n"})
	w.land(made, worktree.Merge)
	assert.DirExists(t, failed)
	assert.Equal(t, "2\n", w.git("show", "HEAD:a"))
	assert.Empty(t, w.git("status", "--porcelain"))
	w.healthy()
}

// A git that the disk hinders is not taken for another process that moves the branch: the landing fails
// and can be repeated, and does not leave the worktree behind.
func TestAGitThatFailsIsNoMovedBranch(t *testing.T) {
	t.Parallel()
	for name, fails := range map[string]string{"the user's tree": ".git", "the worktree": ".git/worktrees/one"} {
		w := newRepository(t, map[string]string{"a": "1\n"})
		w.opts.Git = testkit.Program(t, filepath.Join(w.home, "git"), fmt.Sprintf(`#!/bin/sh
case "$GIT_DIR $*" in %[1]q*"update-ref"*"HEAD"*)
	if mkdir %[2]q 2>/dev/null; then echo "fatal: unable to access 'config': Input/output error" >&2; exit 128; fi
esac
exec git "$@"
`, filepath.Join(w.dir, fails)+" ", filepath.Join(w.home, "failed")))
		made := w.create("one", map[string]string{"a": "2\n"})
		_, err := w.Land(t.Context(), made, worktree.LandOptions{Method: worktree.Merge})
		require.ErrorContains(t, err, "Input/output error", name)
		w.land(made, worktree.Merge)
		assert.Equal(t, "2\n", w.git("show", "HEAD:a"), name)
		w.healthy()
		_, err = w.Discard(t.Context(), made, worktree.DiscardOptions{})
		require.NoError(t, err, "%s: nothing would be lost", name)
	}
}
