//go:build unix

package worktree_test

import (
	"cmp"
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/git"
	"github.com/duet-rpc/duet-rpc/internal/testkit"
	"github.com/duet-rpc/duet-rpc/internal/worktree"
)

// A file that a power cut has left empty is set aside with a line in the log, and work goes on.
func TestDamagedJournal(t *testing.T) {
	t.Parallel()
	w := newRepository(t, map[string]string{"a": "1\n"})
	var log strings.Builder
	w.opts.Log = slog.New(slog.NewTextHandler(&log, nil))
	made := w.create("one", map[string]string{"a": "2\n"})
	state, err := filepath.Glob(filepath.Join(w.opts.Parent, ".duet-*"))
	require.NoError(t, err)
	require.Len(t, state, 1)
	journal := filepath.Join(state[0], "journal")
	require.NoError(t, os.WriteFile(journal, nil, 0o600))

	w.open().land(made, worktree.Merge)
	assert.Contains(t, log.String(), "set aside")
	assert.FileExists(t, journal+".damaged")
	assert.Equal(t, "2\n", string(must(os.ReadFile(filepath.Join(w.dir, "a")))(t)))
}

// A power cut in a landing may leave git's locks, and an old journal may name objects that it has taken.
// Neither blocks the next landing, or the user's git. Locks that a landing never takes stay.
func TestLandingAfterAPowerCut(t *testing.T) {
	t.Parallel()
	for name, object := range map[string]string{"": "", "the object is lost": strings.Repeat("1", 40)} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newRepository(t, map[string]string{"a": "1\n"})
			var log strings.Builder
			w.opts.Log = slog.New(slog.NewTextHandler(&log, nil))
			made := w.create("one", map[string]string{"a": "2\n"})
			state := must(filepath.Glob(filepath.Join(w.opts.Parent, ".duet-*")))(t)
			require.Len(t, state, 1)
			head, dir := strings.TrimSpace(w.git("rev-parse", "HEAD")), filepath.Join(w.dir, ".git")
			move := map[string]any{"dir": dir, "top": w.dir, "old": head, "new": cmp.Or(object, head), "commit": true, "token": "T", "mark": strings.TrimPrefix(filepath.Base(state[0]), ".duet-"), "branch": "main"}
			journal, past := filepath.Join(state[0], "journal"), time.Now().Add(-time.Hour)
			require.NoError(t, os.WriteFile(journal, must(json.Marshal(map[string]any{"moved": move}))(t), 0o600))
			require.NoError(t, os.Chtimes(journal, past, past))
			for file, text := range map[string]string{"HEAD.lock": "", "refs/heads/main.lock": head, "index.lock": "T", "duet-before-" + move["mark"].(string): ""} {
				path := filepath.Join(dir, file)
				require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
				require.NoError(t, os.Chtimes(path, past.Add(time.Minute), past.Add(time.Minute)))
			}
			// A landing takes neither of these: they may be held by the user's git pack-refs or git commit.
			users := []string{"packed-refs.lock", "refs/heads/other.lock", "config.lock"}
			for _, file := range users {
				require.NoError(t, os.WriteFile(filepath.Join(dir, file), nil, 0o600))
				require.NoError(t, os.Chtimes(filepath.Join(dir, file), past.Add(time.Minute), past.Add(time.Minute)))
			}
			before := must(os.ReadFile(filepath.Join(dir, "index")))(t)
			require.NoError(t, os.WriteFile(filepath.Join(dir, "duet-before-"+move["mark"].(string)), before, 0o600))

			w.open().land(made, worktree.Merge)
			assert.Equal(t, object != "", strings.Contains(log.String(), "set aside"), log.String())
			for _, file := range []string{"HEAD.lock", "refs/heads/main.lock", "index.lock"} {
				assert.NoFileExists(t, filepath.Join(dir, file))
			}
			for _, file := range users {
				assert.FileExists(t, filepath.Join(dir, file), "the user's git holds it")
			}
			w.git("commit", "--quiet", "--allow-empty", "--message", "after it")
		})
	}
}

// A power cut while git adds a worktree leaves files of zeros, which git does not sync. The next daemon
// removes them: git neither prunes them, because they are locked, nor finds them sound.
func TestNewWorktreeAfterAPowerCut(t *testing.T) {
	t.Parallel()
	w := newRepository(t, map[string]string{"a": "1\n"})
	made := w.create("one", nil)
	must(w.Discard(t.Context(), made, worktree.DiscardOptions{}))(t)
	state := must(filepath.Glob(filepath.Join(w.opts.Parent, ".duet-*")))(t)
	made.Name, made.Branch, made.Top, made.Dir = "two", "duet/two", filepath.Join(w.opts.Parent, "two"), filepath.Join(w.opts.Parent, "two")
	require.NoError(t, os.WriteFile(filepath.Join(state[0], "journal"), must(json.Marshal(map[string]any{"created": made}))(t), 0o600))
	dir := filepath.Join(w.dir, ".git", "worktrees", "two")
	require.NoError(t, os.MkdirAll(dir, 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "locked"), nil, 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "gitdir"), make([]byte, 90), 0o600))
	must(w.open().List(t.Context()))(t)
	assert.NoDirExists(t, dir)
	w.git("fsck")
}

// A ref of which a power cut has left no text, or a commit without one, does not keep a worktree from
// being discarded.
func TestDiscardBesideADamagedRef(t *testing.T) {
	t.Parallel()
	w := newRepository(t, map[string]string{"a": "1\n"})
	made := w.create("one", map[string]string{"b": "2\n"})
	other := w.create("other", nil)
	testCommit := w.commit(other.Top, map[string]string{"c": "3\n"})
	object := filepath.Join(w.dir, ".git", "objects", testCommit[:2], testCommit[2:])
	require.NoError(t, os.Chmod(object, 0o600))
	require.NoError(t, os.Truncate(object, 0))
	require.NoError(t, os.WriteFile(filepath.Join(w.dir, ".git", "refs", "heads", "empty"), nil, 0o600))

	var losses *worktree.LossError
	require.ErrorAs(t, errorOf(w.Discard(t.Context(), made, worktree.DiscardOptions{})), &losses)
	done := must(w.Discard(t.Context(), made, worktree.DiscardOptions{Force: true}))(t)
	assert.Equal(t, "2", w.git("show", done.Ref+":b")[:1])
	assert.NoDirExists(t, made.Top)
}

// Each git process that writes objects, refs or an index writes them to the disk.
func TestGitSyncsWhatItWrites(t *testing.T) {
	t.Parallel()
	w := newRepository(t, map[string]string{"a": "1\n"})
	log := filepath.Join(w.home, "runs")
	w.opts.Git = filepath.Join(w.home, "git")
	require.NoError(t, os.WriteFile(w.opts.Git, []byte("#!/bin/sh\necho \"$1 $(git config --get core.fsync)\" >>'"+log+"'\nexec git \"$@\"\n"), 0o700))
	made := w.create("one", map[string]string{"b": "2\n"})
	w.land(made, worktree.Squash)
	must(w.Discard(t.Context(), made, worktree.DiscardOptions{}))(t)
	text := must(os.ReadFile(log))(t)
	writes := 0
	for line := range strings.Lines(string(text)) {
		command, fsync, _ := strings.Cut(strings.TrimSpace(line), " ")
		switch command {
		case "worktree", "reset", "update-index", "write-tree", "commit-tree", "merge-tree", "read-tree", "update-ref":
			writes++
			assert.Equal(t, git.Synced, fsync, command)
		}
	}
	assert.Greater(t, writes, 8)
}

// The user may keep other files where git keeps its worktrees.
func TestDiscardLeavesFilesBesideRegistrations(t *testing.T) {
	t.Parallel()
	w := newRepository(t, map[string]string{"a": "1\n"})
	elsewhere := filepath.Join(w.home, "elsewhere")
	require.NoError(t, os.Mkdir(elsewhere, 0o700))
	require.NoError(t, os.Symlink(elsewhere, filepath.Join(w.dir, ".git", "worktrees")))
	made := w.create("one", nil)
	notes := filepath.Join(elsewhere, "notes")
	require.NoError(t, os.WriteFile(notes, []byte("mine\n"), 0o600))
	must(w.Discard(t.Context(), made, worktree.DiscardOptions{}))(t)
	assert.FileExists(t, notes)
}

// git would wait for the other end of a named pipe without end.
func TestNamedPipesInTheWay(t *testing.T) {
	if runtime.GOOS != "linux" {
		testkit.SkipMissing(t, "no other system says what a process waits for")
	}
	t.Parallel()
	for _, name := range []string{".gitignore", ".gitattributes", ".git/packed-refs", "nested/.git/HEAD"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newRepository(t, map[string]string{"a": "1\n"})
			made := w.create("one", map[string]string{"a": "2\n"})
			path := filepath.Join(w.dir, name)
			if name != ".git/packed-refs" {
				path = filepath.Join(made.Top, name)
			}
			if name == "nested/.git/HEAD" {
				gitIn(t, made.Top, "init", "-q", "nested")
				require.NoError(t, os.Remove(path))
			}
			require.NoError(t, syscall.Mkfifo(path, 0o600))
			var pipe *git.PipeError
			require.ErrorAs(t, errorOf(w.Land(t.Context(), made, worktree.LandOptions{Method: worktree.Squash})), &pipe)
			assert.Equal(t, filepath.Base(name), filepath.Base(pipe.Path))
			require.ErrorAs(t, errorOf(w.Discard(t.Context(), made, worktree.DiscardOptions{Force: true})), &pipe)
			require.NoError(t, os.Remove(path))
			w.healthy()
		})
	}
}

// What the errors advise after the link of a worktree to its repository was removed works.
func TestAWorktreeWithoutItsLink(t *testing.T) {
	t.Parallel()
	w := newRepository(t, map[string]string{"a": "1\n"})
	made := w.create("one", nil)
	require.NoError(t, os.Remove(filepath.Join(made.Top, ".git")))
	for name, err := range map[string]error{
		"land":    errorOf(w.Land(t.Context(), made, worktree.LandOptions{Method: worktree.Merge})),
		"discard": errorOf(w.Discard(t.Context(), made, worktree.DiscardOptions{})),
	} {
		assert.ErrorContains(t, err, "git worktree repair", name)
	}
	w.git("worktree", "repair")
	must(w.Discard(t.Context(), made, worktree.DiscardOptions{}))(t)
	assert.NoDirExists(t, made.Top)
}
