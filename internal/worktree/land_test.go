//go:build unix

package worktree_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/testkit"
	"github.com/duet-rpc/duet-rpc/internal/worktree"
)

var methods = []worktree.Method{worktree.Merge, worktree.Squash, worktree.Rebase, worktree.Patch}

// mainMethods are the methods of tests with many cases: all in `make soak`. Otherwise they are one with
// a commit and the one without, because Merge and Rebase share the steps of Squash.
func mainMethods() []worktree.Method {
	if testkit.Soak {
		return methods
	}
	return []worktree.Method{worktree.Squash, worktree.Patch}
}

// A directory or a pipe in the place of a file of the index is landed and kept as what it is.
func TestFileThatBecomesSomethingElse(t *testing.T) {
	t.Parallel()
	for _, method := range append(methods, "discard") {
		t.Run(string(method), func(t *testing.T) {
			t.Parallel()
			w := newRepository(t, map[string]string{"a": "1\n", "b": "1\n", "c": "1\n"})
			wt := w.create("x", nil)
			testkit.WriteFiles(t, wt.Top, map[string]string{"a": ""})
			testkit.WriteFiles(t, wt.Top, map[string]string{"a/b": "2\n"})
			gitIn(t, wt.Top, "add", "--all")
			testkit.WriteFiles(t, wt.Top, map[string]string{"b": ""})
			require.NoError(t, syscall.Mkfifo(filepath.Join(wt.Top, "b"), 0o600))
			if method == "discard" {
				done := must(w.Discard(t.Context(), wt, worktree.DiscardOptions{Force: true}))(t)
				assert.Equal(t, "a/b\nc\n", w.git("ls-tree", "-r", "--name-only", done.Ref))
				return
			}
			w.land(wt, method)
			assert.Equal(t, map[string]string{"a/b": "2\n", "c": "1\n"}, testkit.ReadFiles(t, w.dir))
		})
	}
}

// A patch makes no commit of the user, so it needs no name of the user.
func TestPatchWithoutAName(t *testing.T) {
	w := newRepository(t, map[string]string{"a": "1\n"})
	wt := w.create("x", nil)
	testkit.WriteFiles(t, wt.Top, map[string]string{"a": "2\n"})
	nameless := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(nameless, ".gitconfig"), []byte("[user]\n\tuseConfigOnly = true\n"), 0o600))
	t.Setenv("HOME", nameless)
	_, err := w.Land(t.Context(), wt, worktree.LandOptions{Method: worktree.Squash})
	require.ErrorContains(t, err, "user.name")
	w.land(wt, worktree.Patch)
	assert.Equal(t, "2\n", testkit.ReadFiles(t, w.dir)["a"])
}

func TestLandADirectoryThatIsNoWorktree(t *testing.T) {
	t.Parallel()
	w := newRepository(t, map[string]string{"a": "1\n"})
	wt := w.create("x", map[string]string{"a": "2\n"})
	testkit.WriteFiles(t, wt.Top, map[string]string{"b": "2\n"})
	require.NoError(t, os.Remove(filepath.Join(wt.Top, ".git")))
	for _, method := range methods {
		_, err := w.Land(t.Context(), wt, worktree.LandOptions{Method: method})
		require.ErrorContains(t, err, "is no longer a worktree")
	}
	assert.Equal(t, map[string]string{"a": "1\n"}, testkit.ReadFiles(t, w.dir))
}

// Each method lands commits and uncommitted files. A second landing lands only the new ones.
func TestLandTwice(t *testing.T) {
	t.Parallel()
	for _, method := range methods {
		t.Run(string(method), func(t *testing.T) {
			t.Parallel()
			w := newRepository(t, map[string]string{"a": "1\n", "b": "1\n", "gone": "x\n", "keep": "k\n"})
			wt := w.create("Fix: the Bug!", nil)
			assert.Equal(t, "fix-the-bug", wt.Name)
			assert.Equal(t, "main", wt.Into)
			w.commit(wt.Top, map[string]string{"a": "2\n"})
			testkit.WriteFiles(t, wt.Top, map[string]string{"b": "2\n", "new/file": "x new\n", "link": "-> a", "gone": ""})
			w.commit(w.dir, map[string]string{"users": "u\n"})

			l := w.land(wt, method)
			assert.ElementsMatch(t, []string{"a", "b", "gone", "link", "new/file"}, l.Files)
			want := map[string]string{"a": "2\n", "b": "2\n", "new/file": "x new\n", "link": "-> a", "keep": "k\n", "users": "u\n"}
			assert.Equal(t, want, testkit.ReadFiles(t, w.dir))
			w.healthy()
			again := w.land(wt, method)
			assert.Equal(t, again.Old, again.New)
			assert.Empty(t, again.Files)
			assert.Empty(t, gitIn(t, wt.Top, "status", "--porcelain"))
			if method != worktree.Patch {
				assert.Empty(t, w.git("status", "--porcelain"))
				assert.Equal(t, l.New, w.id(w.dir, "main"))
				assert.Len(t, l.Commits, map[worktree.Method]int{worktree.Merge: 3, worktree.Squash: 1, worktree.Rebase: 2}[method])
				assert.Contains(t, w.git("log", "-1", "--format=%an <%ae>"), "User <user@localhost>")
				assert.True(t, must(w.Changes(t.Context(), wt, 1000))(t).Landed)
				loss := must(w.Losses(t.Context(), wt))(t)
				assert.False(t, loss.Any(), "%+v", loss)
			}

			// The worktree changes the same lines again. Only a landing that knows the first one
			// has no conflict.
			testkit.WriteFiles(t, wt.Top, map[string]string{"a": "3\n", "later": "l\n"})
			l = w.land(wt, method)
			assert.ElementsMatch(t, []string{"a", "later"}, l.Files)
			want["a"], want["later"] = "3\n", "l\n"
			assert.Equal(t, want, testkit.ReadFiles(t, w.dir))
			w.healthy()
		})
	}
}

func TestMergeMovesTheBranchForward(t *testing.T) {
	t.Parallel()
	for _, method := range []worktree.Method{worktree.Merge, worktree.Rebase} {
		w := newRepository(t, map[string]string{"a": "1"})
		wt := w.create("x", nil)
		head := w.commit(wt.Top, map[string]string{"a": "2"})
		assert.Equal(t, head, w.land(wt, method).New)
		assert.Equal(t, head, w.id(w.dir, "HEAD"))
		assert.Equal(t, "refs/heads/main\n", w.git("symbolic-ref", "HEAD"))
		assert.Contains(t, w.git("reflog", "-1"), "duet: land")
	}
}

func TestRebaseKeepsAuthorsAndLeavesOutMerges(t *testing.T) {
	t.Parallel()
	w := newRepository(t, map[string]string{"a": "1", "b": "1"})
	wt := w.create("x", nil)
	testkit.WriteFiles(t, wt.Top, map[string]string{"a": "2"})
	gitIn(t, wt.Top, "commit", "-qam", "first\n\nbody", "--author=Agent <agent@x>", "--date=2001-02-03T04:05:06+0700")
	w.commit(w.dir, map[string]string{"b": "2"})
	gitIn(t, wt.Top, "merge", "-q", "--no-edit", "main")
	w.commit(wt.Top, map[string]string{"c": "3"})
	w.commit(w.dir, map[string]string{"d": "4"})
	w.land(wt, worktree.Rebase)
	assert.Equal(t, "commit of x\nfirst\ncommit of project\ncommit of project\ncommit of project\n", w.git("log", "--topo-order", "--format=%s"))
	assert.Equal(t, "Agent <agent@x> 2001-02-03T04:05:06+07:00 User first\n\nbody\n\n", w.git("log", "-1", "--format=%an <%ae> %aI %cn %B", "HEAD~1"))
	assert.Equal(t, map[string]string{"a": "2", "b": "2", "c": "3", "d": "4"}, testkit.ReadFiles(t, w.dir))
}

func TestConflictsChangeNothing(t *testing.T) {
	t.Parallel()
	for _, method := range methods {
		t.Run(string(method), func(t *testing.T) {
			t.Parallel()
			w := newRepository(t, map[string]string{"a": "1\n", "removed": "r\n", "bin": "\x00\x01", "same": "s\n"})
			wt := w.create("x", map[string]string{"a": "2\n", "removed": "changed\n", "bin": "\x00\x02", "new": "n\n", "both": "x\n", "clash/f": "f"})
			w.commit(w.dir, map[string]string{"a": "3\n", "removed": "", "bin": "\x00\x03", "both": "y\n", "clash": "c"})
			before, beforeIn := w.state(), gitIn(t, wt.Top, "status", "--porcelain")
			head := w.id(wt.Top, "HEAD")
			_, err := w.Land(t.Context(), wt, worktree.LandOptions{Method: method})
			var conflict *worktree.ConflictError
			require.ErrorAs(t, err, &conflict)
			kinds := map[string]string{}
			for _, c := range conflict.Conflicts {
				kinds[strings.Split(c.Path, "~")[0]] = c.Kind
			}
			assert.Equal(t, "contents", kinds["a"])
			assert.Equal(t, "modify/delete", kinds["removed"])
			assert.Equal(t, "binary", kinds["bin"])
			assert.Equal(t, "contents", kinds["both"])
			assert.Equal(t, "file/directory", kinds["clash"])
			assert.Equal(t, before, w.state())
			assert.Equal(t, beforeIn, gitIn(t, wt.Top, "status", "--porcelain"))
			assert.Equal(t, head, w.id(wt.Top, "HEAD"))
			w.healthy()
		})
	}
}

// A landing keeps the changes in the user's dirty tree, or it changes nothing.
func TestUncommittedFilesOfTheUser(t *testing.T) {
	t.Parallel()
	for _, method := range mainMethods() {
		for name, dirty := range map[string]map[string]string{
			"apart":               {"b": "user\n", "untracked": "u\n"},
			"changed":             {"a": "user\n"},
			"deleted":             {"a": ""},
			"untracked":           {"new": "user\n"},
			"ignored":             {"ignored/new": "user\n"},
			"directory":           {"new/file": "user\n"},
			"ignored directory":   {"other/secret.ignored": "user\n"},
			"file for directory":  {"dir": "user\n"},
			"ignored for the dir": {"deep.ignored": "user\n"},
		} {
			t.Run(string(method)+"/"+name, func(t *testing.T) {
				t.Parallel()
				w := newRepository(t, map[string]string{"a": "1\n", "b": "1\n", ".gitignore": "ignored\n*.ignored\n"})
				wt := w.create("x", map[string]string{"a": "2\n", "new": "n\n", "dir/x": "d\n", "other": "o\n"})
				testkit.WriteFiles(t, wt.Top, map[string]string{"ignored/new": "n", "deep.ignored/x": "x"})
				gitIn(t, wt.Top, "add", "-f", "ignored/new", "deep.ignored/x")
				testkit.WriteFiles(t, w.dir, dirty)
				before := w.state()
				_, err := w.Land(t.Context(), wt, worktree.LandOptions{Method: method})
				if name == "apart" {
					require.NoError(t, err)
					assert.Subset(t, testkit.ReadFiles(t, w.dir), map[string]string{"a": "2\n", "b": "user\n", "untracked": "u\n", "new": "n\n"})
					assert.Contains(t, w.git("status", "--porcelain"), " M b\n")
				} else {
					require.Error(t, err)
					var conflict *worktree.ConflictError
					if method != worktree.Patch || !errors.As(err, &conflict) { // a patch merges with the user's files
						var overlap *worktree.OverlapError
						require.ErrorAs(t, err, &overlap)
						for path := range dirty {
							assert.Contains(t, overlap.Paths, path)
						}
					}
					assert.Equal(t, before, w.state())
				}
				w.healthy()
			})
		}
	}
}

func TestLandWhereABranchIsCheckedOut(t *testing.T) {
	t.Parallel()
	w := newRepository(t, map[string]string{"a": "1"})
	w.git("branch", "free")
	w.git("worktree", "add", "-q", "-b", "linked", "../linked")
	wt := w.create("x", map[string]string{"a": "2"})
	for _, into := range []string{"free", "linked", "main"} {
		l := must(w.Land(t.Context(), wt, worktree.LandOptions{Method: worktree.Squash, Into: into}))(t)
		assert.Equal(t, l.New, w.id(w.dir, into))
	}
	assert.Equal(t, "2", testkit.ReadFiles(t, filepath.Join(w.home, "linked"))["a"])
	assert.Empty(t, gitIn(t, filepath.Join(w.home, "linked"), "status", "--porcelain"))
	assert.Empty(t, w.git("status", "--porcelain"))
	w.healthy()
	for _, into := range []string{"missing", wt.Branch} {
		_, err := w.Land(t.Context(), wt, worktree.LandOptions{Method: worktree.Squash, Into: into})
		require.ErrorContains(t, err, "nothing is landed")
	}
}

func TestUnfinishedOperationsOfTheUser(t *testing.T) {
	t.Parallel()
	for _, operation := range []string{"merge", "rebase", "cherry-pick", "revert"} {
		t.Run(operation, func(t *testing.T) {
			t.Parallel()
			w := newRepository(t, map[string]string{"a": "1"})
			w.git("checkout", "-q", "-b", "other")
			w.commit(w.dir, map[string]string{"a": "2"})
			w.git("checkout", "-q", "main")
			wt := w.create("x", map[string]string{"b": "b"})
			first := w.commit(w.dir, map[string]string{"a": "3"})
			w.commit(w.dir, map[string]string{"a": "4"})
			args := []string{operation, "other"}
			if operation == "revert" {
				args = []string{"revert", "--no-edit", first}
			}
			_, _ = runIn(w.dir, args...)
			before := w.state()
			for _, method := range methods {
				_, err := w.Land(t.Context(), wt, worktree.LandOptions{Method: method})
				var busy *worktree.BusyError
				require.ErrorAs(t, err, &busy)
				assert.Equal(t, operation, busy.Operation)
				assert.Equal(t, w.dir, busy.Dir)
			}
			assert.Equal(t, before, w.state())
		})
	}
}

func TestUnfinishedMergeInTheWorktree(t *testing.T) {
	t.Parallel()
	w := newRepository(t, map[string]string{"a": "1"})
	wt := w.create("x", nil)
	w.commit(wt.Top, map[string]string{"a": "2"})
	w.commit(w.dir, map[string]string{"a": "3"})
	_, _ = runIn(wt.Top, "merge", "main")
	_, err := w.Land(t.Context(), wt, worktree.LandOptions{Method: worktree.Merge})
	assert.EqualError(t, err, "a merge is in progress in "+wt.Top+": finish or abort it first")
	testkit.WriteFiles(t, wt.Top, map[string]string{"a": "both"})
	gitIn(t, wt.Top, "commit", "-qam", "merged")
	w.land(wt, worktree.Merge)
	assert.Equal(t, "both", testkit.ReadFiles(t, w.dir)["a"])
}

func TestIndexIsLocked(t *testing.T) {
	t.Parallel()
	w := newRepository(t, map[string]string{"a": "1"})
	wt := w.create("x", map[string]string{"a": "2"})
	lock := filepath.Join(w.dir, ".git", "index.lock")
	require.NoError(t, os.WriteFile(lock, []byte("theirs"), 0o600))
	for _, method := range []worktree.Method{worktree.Merge, worktree.Squash, worktree.Rebase} {
		_, err := w.Land(t.Context(), wt, worktree.LandOptions{Method: method})
		require.ErrorContains(t, err, "is in use by another git process")
	}
	assert.Equal(t, "theirs", string(must(os.ReadFile(lock))(t)))
	assert.Equal(t, "1", testkit.ReadFiles(t, w.dir)["a"])
	require.NoError(t, os.Remove(lock))
	w.land(wt, worktree.Squash)
	w.healthy()
}

// A lock of the worktree's own index leaves its files uncommitted. They land once.
func TestWorktreesIndexIsLocked(t *testing.T) {
	t.Parallel()
	w := newRepository(t, map[string]string{"a": "1"})
	wt := w.create("x", map[string]string{"a": "2"})
	lock := filepath.Join(w.dir, ".git", "worktrees", "x", "index.lock")
	require.NoError(t, os.WriteFile(lock, nil, 0o600))
	w.land(wt, worktree.Squash)
	require.NoError(t, os.Remove(lock))
	again := w.land(wt, worktree.Squash)
	assert.Equal(t, again.Old, again.New)
}

func TestUncommittedFilesAreRefused(t *testing.T) {
	t.Parallel()
	w := newRepository(t, map[string]string{"a": "1"})
	wt := w.create("x", map[string]string{"a": "2", "b": "3"})
	_, err := w.Land(t.Context(), wt, worktree.LandOptions{Method: worktree.Merge, Committed: true})
	var uncommitted *worktree.UncommittedError
	require.ErrorAs(t, err, &uncommitted)
	assert.Equal(t, []string{"a", "b"}, uncommitted.Paths)
}

// A landing keeps the user's staged changes staged.
func TestStagedFilesStayStaged(t *testing.T) {
	t.Parallel()
	for _, method := range methods {
		w := newRepository(t, map[string]string{"a": "1", "b": "1"})
		wt := w.create("x", map[string]string{"a": "2"})
		testkit.WriteFiles(t, w.dir, map[string]string{"b": "staged", "c": "new"})
		w.git("add", "b", "c")
		testkit.WriteFiles(t, w.dir, map[string]string{"b": "more"})
		w.land(wt, method)
		assert.Subset(t, strings.Split(w.git("status", "--porcelain"), "\n"), []string{"MM b", "A  c"})
		assert.Equal(t, "staged", w.git("show", ":b"))
	}
}

// A file with a new time and the same content is no change by the user.
func TestTouchedFiles(t *testing.T) {
	t.Parallel()
	for _, method := range methods {
		w := newRepository(t, map[string]string{"a": "1", "b": "1"})
		wt := w.create("x", map[string]string{"a": "2"})
		for _, name := range []string{"a", "b"} {
			require.NoError(t, os.Chtimes(filepath.Join(w.dir, name), time.Unix(1, 0), time.Unix(1, 0)))
		}
		w.land(wt, method)
		assert.Equal(t, map[string]string{"a": "2", "b": "1"}, testkit.ReadFiles(t, w.dir))
	}
}

// A filter that fails in the middle of a landing leaves the user's files unchanged.
func TestFilterFailsWhileFilesAreWritten(t *testing.T) {
	t.Parallel()
	for _, method := range methods {
		w := newRepository(t, map[string]string{"a": "1\n", "m.bad": "1\n", "z": "1\n", ".gitattributes": "*.bad filter=bad\n"})
		w.opts.Trusted = true
		wt := w.create("x", map[string]string{"a": "2\n", "b": "new\n", "m.bad": "2\n", "z": ""})
		w.git("config", "filter.bad.smudge", "exit 1")
		w.git("config", "filter.bad.clean", "cat")
		w.git("config", "filter.bad.required", "true")
		w.open()
		before := w.state()
		_, err := w.Land(t.Context(), wt, worktree.LandOptions{Method: method})
		require.Error(t, err)
		w.git("config", "filter.bad.smudge", "cat")
		w.git("checkout", "m.bad") // git removes a file before its filter fails
		delete(before, "config")
		assert.Subset(t, w.state(), before, "%v", err)
	}
}
