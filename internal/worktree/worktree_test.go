//go:build unix

package worktree_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/testkit"
	"github.com/duet-rpc/duet-rpc/internal/worktree"
)

func TestNames(t *testing.T) {
	t.Parallel()
	w := newRepository(t, map[string]string{"a": "1"})
	w.git("branch", "duet/TAKEN")
	w.git("branch", "duet/deep/er")
	w.open()
	require.NoError(t, os.Mkdir(filepath.Join(w.opts.Parent, "Dir"), 0o755))
	for _, c := range [][2]string{
		{"Fix the Bug #12!", "fix-the-bug-12"},
		{"fix THE bug 12", "fix-the-bug-12-2"},
		{"", "work"},
		{"../../etc", "etc"},
		{"héllo wörld", "h-llo-w-rld"},
		{"漢字", "work-2"},
		{"con", "con-work"},
		{"LPT1", "lpt1-work"},
		{"a.lock", "a-lock"},
		{"-x--y-", "x-y"},
		{"taken", "taken-2"},
		{"deep", "deep-2"},
		{"dir", "dir-2"},
		{"line\nbreak\x00", "line-break"},
		{"HEAD", "head"},
		{strings.Repeat("long ", 30), "long-long-long-long-long-long-long-long"},
		{strings.Repeat("long ", 30), "long-long-long-long-long-long-long-long-2"},
	} {
		wt := w.create(c[0], nil)
		assert.Equal(t, c[1], wt.Name, "%q", c[0])
		assert.Equal(t, "refs/heads/duet/"+c[1]+"\n", gitIn(t, wt.Top, "symbolic-ref", "HEAD"))
	}
	assert.Len(t, must(w.List(t.Context()))(t), 17)
	w.healthy()
	w.git("branch", "-m", "duet/TAKEN", "x")
}

func TestOpenSaysWhatToDo(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		prepare func(w *world)
		want    string
	}{
		"no repository": {func(w *world) { os.RemoveAll(filepath.Join(w.dir, ".git")) }, "run git init and make a commit"},
		"no commit":     {func(w *world) { os.RemoveAll(filepath.Join(w.dir, ".git")); w.git("init", "-q") }, "has no commit yet: make one first"},
		"bare": {
			func(w *world) {
				w.git("clone", "-q", "--bare", ".", "../bare")
				w.opts.Dir = filepath.Join(w.home, "bare")
			},
			"is a bare repository: open a worktree of it",
		},
		"parent inside":  {func(w *world) { w.opts.Parent = filepath.Join(w.dir, "x", "y") }, "choose a directory outside of"},
		"parent in .git": {func(w *world) { w.opts.Parent = filepath.Join(w.dir, ".git", "x") }, "choose a directory outside of"},
		"parent behind a link": {func(w *world) {
			w.opts.Parent = filepath.Join(w.home, "link", "x")
			os.Symlink(w.dir, filepath.Dir(w.opts.Parent))
		}, "choose a directory outside of"},
		"no git": {func(w *world) { w.opts.Git = "/nonexistent/git" }, "cannot run git"},
		"old git": {func(w *world) {
			w.opts.Git = testkit.Program(w, filepath.Join(w.home, "git"), "#!/bin/sh\necho git version 2.38.1\n")
		}, "git 2.38 is too old for worktrees: install git 2.39 or later"},
		"another format": {func(w *world) { w.git("config", "extensions.refStorage", "reftable") }, "unknown extension"},
		"an ignored directory": {func(w *world) {
			testkit.WriteFiles(w, w.dir, map[string]string{"i/x": "x", ".gitignore": "i\n"})
			w.opts.Dir = filepath.Join(w.dir, "i")
		}, "is ignored by the repository"},
		"a file of other users": {func(w *world) {
			if os.Geteuid() != 0 {
				testkit.SkipMissing(w, "only root can give a file away")
			}
			require.NoError(w, os.Chown(filepath.Join(w.dir, ".git", "objects"), 12345, 12345))
		}, "use a clone that you own and may write"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newRepository(t, map[string]string{"a": "1"})
			c.prepare(w)
			require.ErrorContains(t, errorOf(worktree.Open(t.Context(), w.opts)), c.want)
			assert.NoDirExists(t, filepath.Join(w.dir, "x"))
		})
	}
}

// In each kind of repository a worktree has the same files, and its changes land.
func TestKindsOfRepositories(t *testing.T) {
	t.Parallel()
	for name, prepare := range map[string]func(w *world){
		"plain":    func(w *world) {},
		"packed":   func(w *world) { w.git("gc", "-q"); w.git("pack-refs", "--all") },
		"detached": func(w *world) { w.git("checkout", "-q", "--detach") },
		"linked worktree": func(w *world) {
			w.git("worktree", "add", "-q", "-b", "other", "../other")
			w.dir = filepath.Join(w.home, "other")
			w.opts.Dir = w.dir
		},
		"linked worktree of a bare repository": func(w *world) {
			w.git("clone", "-q", "--bare", ".", "../bare.git")
			gitIn(w, filepath.Join(w.home, "bare.git"), "worktree", "add", "-q", "-b", "other", "../other")
			w.dir = filepath.Join(w.home, "other")
			w.opts.Dir = w.dir
		},
		"submodule": func(w *world) {
			outer := filepath.Join(w.home, "outer")
			gitIn(w, w.home, "init", "-q", outer)
			gitIn(w, outer, "submodule", "--quiet", "add", w.dir, "sub")
			w.dir = filepath.Join(outer, "sub")
			w.opts.Dir = w.dir
		},
		"linked worktree of a submodule": func(w *world) {
			outer := filepath.Join(w.home, "outer")
			gitIn(w, w.home, "init", "-q", outer)
			gitIn(w, outer, "submodule", "--quiet", "add", w.dir, "sub")
			gitIn(w, filepath.Join(outer, "sub"), "worktree", "add", "-q", "-b", "other", filepath.Join(w.home, "other"))
			w.dir = filepath.Join(w.home, "other")
			w.opts.Dir = w.dir
		},
		"with a submodule": func(w *world) {
			gitIn(w, w.home, "clone", "-q", w.dir, "from")
			w.git("submodule", "--quiet", "add", filepath.Join(w.home, "from"), "sub")
			w.git("commit", "-q", "-m", "sub")
		},
		"separate git directory": func(w *world) { w.git("init", "-q", "--separate-git-dir", "../else.git") },
		"shallow": func(w *world) {
			w.commit(w.dir, map[string]string{"a": "2\n"})
			gitIn(w, w.home, "clone", "-q", "--depth=1", "file://"+w.dir, "clone")
			w.dir = filepath.Join(w.home, "clone")
			w.opts.Dir = w.dir
		},
		"alternates": func(w *world) {
			gitIn(w, w.home, "clone", "-q", "--shared", w.dir, "clone")
			w.dir = filepath.Join(w.home, "clone")
			w.opts.Dir = w.dir
		},
		"sparse":    func(w *world) { w.git("sparse-checkout", "set", "d") },
		"no cone":   func(w *world) { w.git("sparse-checkout", "set", "--no-cone", "/*", "!/e/") },
		"sparse ix": func(w *world) { w.git("sparse-checkout", "set", "--sparse-index", "d") },
		"autocrlf": func(w *world) {
			w.git("config", "core.autocrlf", "true")
			w.git("rm", "-rq", "--cached", ".")
			w.git("reset", "-q", "--hard")
		},
		"split":        func(w *world) { w.git("update-index", "--split-index") },
		"untracked":    func(w *world) { w.git("update-index", "--untracked-cache") },
		"fileMode":     func(w *world) { w.git("config", "core.fileMode", "false") },
		"sharedRepo":   func(w *world) { w.git("config", "core.sharedRepository", "group") },
		"subdirectory": func(w *world) { w.opts.Dir = filepath.Join(w.dir, "d") },
		"new subdirectory": func(w *world) {
			w.opts.Dir = filepath.Join(w.dir, "untracked")
			require.NoError(w, os.Mkdir(w.opts.Dir, 0o755))
		},
		"sha256": func(w *world) {
			require.NoError(w, os.RemoveAll(filepath.Join(w.dir, ".git")))
			w.git("init", "-q", "--object-format=sha256")
			w.commit(w.dir, nil)
		},
		"branches": func(w *world) { w.git("checkout", "-q", "-b", "feature/α β"[:len("feature/α")]) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newRepository(t, map[string]string{
				"a": "1\n2\n", "d/b": "b\n", "e/c": "c\n", "ünï\ncode \"": "u\n", "run": "x #!/bin/sh\n", "link": "-> d/b", "bin": "\x00\xff\r\n", "-dash": "d\n",
			})
			prepare(w)
			w.open()
			want := testkit.ReadFiles(t, w.dir)
			wt := w.create("x", nil)
			assert.Equal(t, filepath.Join(wt.Top, must(filepath.Rel(w.dir, w.opts.Dir))(t)), wt.Dir)
			assert.DirExists(t, wt.Dir)
			if name == "with a submodule" {
				for file := range want {
					if strings.HasPrefix(file, "sub/") {
						delete(want, file)
					}
				}
			}
			assert.Equal(t, want, testkit.ReadFiles(t, wt.Top))
			assert.Empty(t, gitIn(t, wt.Top, "status", "--porcelain"))
			s := must(w.Changes(t.Context(), wt, 1000))(t)
			assert.Zero(t, s.Commits.Count+len(s.Files)+s.Nested.Count)

			changes := map[string]string{"d/b": "changed\n", "d/new ü\n": "n\n", "run": "#!/bin/sh\n", "link": "-> a", "bin": "\x00\xfe\n", "-dash": ""}
			if name == "fileMode" {
				delete(changes, "run")
			}
			if strings.HasPrefix(name, "sparse") {
				changes = map[string]string{"d/b": "changed\n", "d/new": "n\n"}
			}
			if name == "autocrlf" {
				changes["d/b"], changes["d/new ü\n"], changes["run"] = "changed\r\n", "n\r\n", "#!/bin/sh\r\n"
			}
			testkit.WriteFiles(t, wt.Top, changes)
			for file, text := range changes {
				if want[file] = text; text == "" {
					delete(want, file)
				}
			}
			if name == "detached" {
				assert.Empty(t, wt.Into)
				_, err := w.Land(t.Context(), wt, worktree.LandOptions{Method: worktree.Squash})
				require.ErrorContains(t, err, "name the branch to land on")
				w.git("checkout", "-q", "main")
				wt.Into = "main"
				must(w.Land(t.Context(), wt, worktree.LandOptions{Method: worktree.Squash, Into: "main"}))(t)
			} else {
				w.land(wt, worktree.Squash)
			}
			got := testkit.ReadFiles(t, w.dir)
			for file := range got {
				if name == "with a submodule" && strings.HasPrefix(file, "sub/") {
					delete(got, file)
				}
			}
			assert.Equal(t, want, got)
			assert.Empty(t, w.git("status", "--porcelain"))
			assert.Empty(t, gitIn(t, wt.Top, "status", "--porcelain"))
			w.git("fsck", "--strict")

			testkit.WriteFiles(t, wt.Top, map[string]string{"d/b": "again\n"})
			l := w.land(wt, worktree.Patch)
			assert.Equal(t, []string{"d/b"}, l.Files)
			assert.Equal(t, " M d/b\n", w.git("status", "--porcelain"))
			assert.NotEmpty(t, must(w.Discard(t.Context(), wt, worktree.DiscardOptions{Force: true}))(t).Ref)
			assert.NoDirExists(t, wt.Top)
			assert.NotContains(t, w.git("worktree", "list"), wt.Top)
			assert.Empty(t, w.git("branch", "--list", "duet/*"))
			w.git("fsck", "--strict")
		})
	}
}

// Prepare runs the setup once for a worktree, and again after a failed setup.
func TestPrepare(t *testing.T) {
	t.Parallel()
	w := newRepository(t, map[string]string{".gitignore": ".env\n"})
	testkit.WriteFiles(t, w.dir, map[string]string{".env": "e\n"})
	wt := w.create("x", nil)
	calls := 0
	setup := func(context.Context) error {
		assert.Equal(t, "e\n", testkit.ReadFiles(t, wt.Top)[".env"])
		if calls++; calls == 1 {
			return errors.New("not yet")
		}
		return nil
	}
	require.EqualError(t, errorOf(w.Prepare(t.Context(), wt, []string{".env"}, setup)), "not yet")
	must(w.Prepare(t.Context(), wt, []string{".env"}, setup))(t)
	testkit.WriteFiles(t, wt.Top, map[string]string{".env": ""})
	must(w.Prepare(t.Context(), wt, []string{".env"}, setup))(t)
	assert.NotContains(t, testkit.ReadFiles(t, wt.Top), ".env")
	assert.Equal(t, 2, calls)
}

// Renew moves a worktree to the user's commit only if all its work has landed.
func TestRenew(t *testing.T) {
	t.Parallel()
	for _, method := range methods {
		w := newRepository(t, map[string]string{"a": "1\n", ".gitignore": "ignored\n"})
		wt := w.create("x", nil)
		renews := func(want bool) {
			t.Helper()
			before := testkit.ReadFiles(t, wt.Top)
			require.Equal(t, want, must(w.Renew(t.Context(), wt))(t), method)
			if want {
				before = testkit.ReadFiles(t, w.dir)
				before["ignored"] = "kept\n"
			}
			assert.Equal(t, before, testkit.ReadFiles(t, wt.Top))
		}
		testkit.WriteFiles(t, wt.Top, map[string]string{"ignored": "kept\n"})
		renews(false)
		w.commit(w.dir, map[string]string{"users": "u\n"})
		renews(true)
		testkit.WriteFiles(t, wt.Top, map[string]string{"a": "2\n"})
		renews(false)
		w.land(wt, method)
		if method == worktree.Patch {
			renews(false) // the user has not committed it
		}
		w.commit(w.dir, map[string]string{"users": "v\n"})
		renews(true)
		testkit.WriteFiles(t, wt.Top, map[string]string{"a": "3\n"})
		w.land(wt, method)
		assert.Equal(t, "3\n", testkit.ReadFiles(t, w.dir)["a"])
		w.commit(w.dir, map[string]string{"ignored": "x mine\n"})
		w.git("add", "-f", "ignored")
		w.git("commit", "-qm", "ignored")
		assert.ErrorAs(t, errorOf(w.Renew(t.Context(), wt)), new(*worktree.OverlapError))
		assert.Equal(t, "kept\n", testkit.ReadFiles(t, wt.Top)["ignored"])
		w.healthy()
	}
}

// A link in place of the index of a worktree leads git to no file outside.
func TestIndexIsNoLink(t *testing.T) {
	t.Parallel()
	w := newRepository(t, map[string]string{"a": "1\n"})
	wt := w.create("x", nil)
	index := filepath.Join(w.dir, ".git", "worktrees", filepath.Base(wt.Top), "index")
	outside := filepath.Join(t.TempDir(), "outside")
	content := must(os.ReadFile(index))(t)
	require.NoError(t, os.WriteFile(outside, content, 0o600))
	require.NoError(t, os.Remove(index))
	require.NoError(t, os.Symlink(outside, index))
	w.commit(w.dir, map[string]string{"a": "2\n"})
	assert.ErrorContains(t, errorOf(w.Renew(t.Context(), wt)), "is not a regular file")
	assert.Equal(t, content, must(os.ReadFile(outside))(t))
	require.NoError(t, os.Remove(index))
	assert.Equal(t, "1\n", testkit.ReadFiles(t, wt.Top)["a"])
}

func TestCopyFiles(t *testing.T) {
	t.Parallel()
	w := newRepository(t, map[string]string{"a": "1", ".gitignore": ".env\nbig\n", "config/tracked.yml": "t"})
	secret := filepath.Join(w.home, "secret")
	require.NoError(t, os.WriteFile(secret, []byte("s"), 0o600))
	testkit.WriteFiles(t, w.dir, map[string]string{
		".env": "E", "config/local.yml": "L", "config/local.sh": "x S", "link": "-> " + secret, "linked": "-> ../", "inner": "-> a", "config/dir/x": "x", "many/x": "x",
	})
	require.NoError(t, os.Chmod(filepath.Join(w.dir, ".env"), 0o400))
	require.NoError(t, os.WriteFile(filepath.Join(w.dir, "big"), make([]byte, 17<<20), 0o600))
	for i := range 210 {
		testkit.WriteFiles(t, w.dir, map[string]string{fmt.Sprintf("many/%03d", i): "m"})
	}
	wt := w.create("x", map[string]string{"config/local.sh": "mine"})
	done, err := w.CopyFiles(t.Context(), wt, []string{".env", "config/*", "link", "inner", "linked/*", "linked/secret", ".git/config", ".GIT/config", "../secret", "/etc/passwd", "big", "missing", ".env"})
	require.NoError(t, err)
	assert.Equal(t, []string{".env", "config/local.yml"}, done.Copied)
	reasons := map[string]string{}
	for _, s := range done.Skipped {
		reasons[s.Path] = s.Reason
	}
	assert.Equal(t, map[string]string{
		"config/local.sh": "exists in the worktree", "config/tracked.yml": "is tracked by git", "config/dir": "is no regular file",
		"inner": "is or is behind a symbolic link", ".git/config": "belongs to git", "big": "is more than 16 MB with the files before it",
	}, reasons)
	assert.Equal(t, os.FileMode(0o400), must(os.Stat(filepath.Join(wt.Top, ".env")))(t).Mode().Perm())

	// A copied file is no work: a landing ignores it, and a discard loses nothing.
	testkit.WriteFiles(t, wt.Top, map[string]string{"config/local.sh": ""})
	assert.Empty(t, must(w.Changes(t.Context(), wt, 1000))(t).Files)
	l := w.land(wt, worktree.Merge)
	assert.Equal(t, l.Old, l.New)
	losses := must(w.Losses(t.Context(), wt))(t)
	assert.False(t, losses.Any())
	assert.ElementsMatch(t, []string{".env", "config/local.yml"}, losses.Ignored.First)

	done = must(w.CopyFiles(t.Context(), wt, []string{"many/*"}))(t)
	assert.Len(t, done.Copied, 200)
	assert.Len(t, done.Skipped, 11)
	require.ErrorContains(t, errorOf(w.CopyFiles(t.Context(), wt, []string{"["})), "syntax error in pattern")

	// The worktree's links lead nowhere, either.
	other := w.create("y", map[string]string{"config": ""})
	require.NoError(t, os.Symlink(w.home, filepath.Join(other.Top, "config")))
	must(w.CopyFiles(t.Context(), other, []string{"config/local.yml"}))(t)
	assert.NoFileExists(t, filepath.Join(w.home, "local.yml"))
}

func TestChanges(t *testing.T) {
	t.Parallel()
	w := newRepository(t, map[string]string{"a": "1\n", "b": "1\n"})
	wt := w.create("x", nil)
	s := must(w.Changes(t.Context(), wt, 1000))(t)
	assert.True(t, s.Landed)

	w.commit(wt.Top, map[string]string{"a": "2\n"})
	head := w.commit(wt.Top, map[string]string{"c": "3\n"})
	w.commit(w.dir, map[string]string{"b": "2\n"})
	testkit.WriteFiles(t, wt.Top, map[string]string{"a": "4\n", "new1": "n", "d/new2": "n", "bin": "\x00"})
	gitIn(t, wt.Top, "init", "-q", "nested")
	s = must(w.Changes(t.Context(), wt, 1000))(t)
	assert.Equal(t, 2, s.Commits.Count)
	assert.Contains(t, s.Commits.First[0], "commit of x")
	assert.Equal(t, []worktree.FileChange{
		{Path: "a", Added: 1, Removed: 1}, {Path: "bin", IsBinary: true}, {Path: "c", Added: 1}, {Path: "d/new2", Added: 1}, {Path: "new1", Added: 1},
	}, s.Files)
	assert.Contains(t, s.Patch, "--- a/a\n+++ b/a\n@@ -1 +1 @@\n-1\n+4\n")
	assert.Contains(t, s.Patch, "+++ b/new1\n@@ -0,0 +1 @@\n+n\n\\ No newline at end of file\n")
	assert.False(t, s.IsCut)
	short := must(w.Changes(t.Context(), wt, 100))(t)
	assert.True(t, short.IsCut)
	assert.True(t, strings.HasPrefix(s.Patch, short.Patch) && strings.HasSuffix(short.Patch, "\n"), short.Patch)
	assert.Equal(t, s.Files, short.Files)
	assert.Equal(t, worktree.Listing{Count: 1, First: []string{"nested/"}}, s.Nested)
	assert.False(t, s.Landed)

	// The user takes over the commits in other ways, and then changes the same lines.
	gitIn(t, wt.Top, "reset", "-q", "--hard")
	gitIn(t, wt.Top, "clean", "-ffdq")
	start := w.id(w.dir, "HEAD")
	for name, bring := range map[string]func(){
		"squash": func() { w.git("merge", "-q", "--squash", head); w.git("commit", "-qm", "squashed") },
		"pick":   func() { w.git("cherry-pick", "main.."+head) },
	} {
		bring()
		for range 2 {
			s = must(w.Changes(t.Context(), wt, 1000))(t)
			assert.True(t, s.Landed, name)
			w.commit(w.dir, map[string]string{"a": "5\n"})
		}
		w.git("reset", "-q", "--hard", start)
	}
	s = must(w.Changes(t.Context(), wt, 1000))(t)
	assert.False(t, s.Landed)

	w.git("checkout", "-q", "-b", "elsewhere")
	w.git("branch", "-D", "main")
	require.NoError(t, os.RemoveAll(wt.Top))
	s = must(w.Changes(t.Context(), wt, 1000))(t)
	assert.False(t, s.Landed)
	assert.Equal(t, []worktree.FileChange{{Path: "a", Added: 1, Removed: 1}, {Path: "c", Added: 1}}, s.Files)
	w.git("worktree", "prune")
	w.git("branch", "-D", wt.Branch)
	require.ErrorIs(t, errorOf(w.Changes(t.Context(), wt, 1000)), worktree.ErrGone)
}

func TestDiscard(t *testing.T) {
	t.Parallel()
	w := newRepository(t, map[string]string{"a": "1", ".gitignore": "ignored\n"})
	wt := w.create("x", nil)
	w.commit(wt.Top, map[string]string{"b": "committed"})
	testkit.WriteFiles(t, wt.Top, map[string]string{"a": "changed", "c": "new", "ignored/1": "i", "run": "x r"})
	require.NoError(t, os.Chmod(filepath.Join(wt.Top, "ignored"), 0o500)) // as in a cache of Go modules
	gitIn(t, wt.Top, "init", "-q", "nested")
	before := w.state()
	_, err := w.Discard(t.Context(), wt, worktree.DiscardOptions{})
	var loss *worktree.LossError
	require.ErrorAs(t, err, &loss)
	assert.Equal(t, before, w.state())
	assert.Equal(t, 1, loss.Losses.Commits.Count)
	assert.Equal(t, []string{"a"}, loss.Losses.Uncommitted.First)
	assert.Equal(t, []string{"c", "run"}, loss.Losses.Untracked.First)
	assert.Equal(t, []string{"nested/"}, loss.Losses.Nested.First)
	assert.Equal(t, []string{"ignored/"}, loss.Losses.Ignored.First)

	done := must(w.Discard(t.Context(), wt, worktree.DiscardOptions{Force: true}))(t)
	assert.Equal(t, "refs/duet/discarded/x", done.Ref)
	assert.NoDirExists(t, wt.Top)
	assert.Empty(t, w.git("branch", "--list", "duet/*"))
	assert.NotContains(t, w.git("worktree", "list"), wt.Top)
	w.git("branch", "back", done.Ref)
	assert.Equal(t, ".gitignore\na\nb\nc\nrun\n", w.git("ls-tree", "-r", "--name-only", "back"))
	assert.Equal(t, "changed", w.git("show", "back:a"))
	w.healthy()
	// A second Discard finds nothing to delete.
	done = must(w.Discard(t.Context(), wt, worktree.DiscardOptions{}))(t)
	assert.Empty(t, done)

	// Landed work, and work on another branch, is no loss.
	landed := w.create("x", map[string]string{"b": "landed"})
	w.land(landed, worktree.Squash)
	must(w.Discard(t.Context(), landed, worktree.DiscardOptions{}))(t)
	kept := w.create("y", nil)
	w.commit(kept.Top, map[string]string{"y": "y"})
	w.git("branch", "other", kept.Branch)
	must(w.Discard(t.Context(), kept, worktree.DiscardOptions{}))(t)
	w.healthy()
}

func TestDiscardOddWorktrees(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		prepare func(w *world, wt worktree.Worktree)
		refused string            // part of the error; "": none
		stays   string            // a file that a refusal keeps
		shows   map[string]string // the files of the kept work, as git names them after its ref
		check   func(t *testing.T, w *world, wt worktree.Worktree, done worktree.Discarded)
	}{
		"locked": {
			prepare: func(w *world, wt worktree.Worktree) { w.git("worktree", "lock", wt.Top) },
			refused: "run git worktree unlock first", stays: "new",
		},
		"directory gone": {
			prepare: func(w *world, wt worktree.Worktree) { os.RemoveAll(wt.Top) },
			shows:   map[string]string{":b": "b"},
		},
		"directory and registration gone": {
			prepare: func(w *world, wt worktree.Worktree) { os.RemoveAll(wt.Top); w.git("worktree", "prune") },
			shows:   map[string]string{":b": "b"},
		},
		"registration gone": {
			prepare: func(w *world, wt worktree.Worktree) { os.RemoveAll(filepath.Join(w.dir, ".git", "worktrees", wt.Name)) },
			refused: "is no longer a worktree", stays: "new",
		},
		"branch deleted": {
			prepare: func(w *world, wt worktree.Worktree) { w.git("update-ref", "-d", "refs/heads/"+wt.Branch) },
			shows:   map[string]string{":new": "new", "^:b": "b"},
		},
		"branch checked out by the user": {
			prepare: func(w *world, wt worktree.Worktree) { w.git("checkout", "-q", "--ignore-other-worktrees", wt.Branch) },
			shows:   map[string]string{":new": "new"},
			check: func(t *testing.T, w *world, wt worktree.Worktree, done worktree.Discarded) {
				assert.True(t, done.BranchKept)
				assert.Equal(t, wt.Branch+"\n", w.git("branch", "--show-current"))
			},
		},
		"another branch in the worktree": {
			prepare: func(w *world, wt worktree.Worktree) { gitIn(w, wt.Top, "checkout", "-q", "-b", "agents") },
			shows:   map[string]string{":new": "new"},
			check: func(t *testing.T, w *world, _ worktree.Worktree, _ worktree.Discarded) {
				assert.Equal(t, "b", w.git("show", "agents:b"))
			},
		},
		"detached with commits": {
			prepare: func(w *world, wt worktree.Worktree) {
				gitIn(w, wt.Top, "checkout", "-q", "--detach", "HEAD^")
				w.commit(wt.Top, map[string]string{"detached": "d"})
			},
			check: func(t *testing.T, w *world, wt worktree.Worktree, done worktree.Discarded) {
				w.git("merge-base", "--is-ancestor", wt.Base, done.Ref)
				log := w.git("log", "--format=%H", "-m", "--name-only", done.Ref)
				assert.Contains(t, log, "detached")
				assert.Contains(t, log, "\nb\n")
			},
		},
		"moved": {
			prepare: func(w *world, wt worktree.Worktree) { w.git("worktree", "move", wt.Top, "../moved") },
			shows:   map[string]string{":new": "new"},
			check: func(t *testing.T, w *world, _ worktree.Worktree, _ worktree.Discarded) {
				assert.NoDirExists(t, filepath.Join(w.home, "moved"))
			},
		},
		"not ours": {
			prepare: func(w *world, wt worktree.Worktree) {
				w.git("worktree", "add", "-q", "-b", "users", "../users")
				require.NoError(w, os.RemoveAll(wt.Top))
				require.NoError(w, os.Rename(filepath.Join(w.home, "users"), wt.Top))
			},
			refused: "is no longer a worktree", stays: "a",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newRepository(t, map[string]string{"a": "1"})
			wt := w.create("x", nil)
			w.commit(wt.Top, map[string]string{"b": "b"})
			testkit.WriteFiles(t, wt.Top, map[string]string{"new": "new"})
			c.prepare(w, wt)
			done, err := w.Discard(t.Context(), wt, worktree.DiscardOptions{Force: true})
			if c.refused != "" {
				require.ErrorContains(t, err, c.refused)
				assert.FileExists(t, filepath.Join(wt.Top, c.stays))
			} else {
				require.NoError(t, err)
				for file, text := range c.shows {
					assert.Equal(t, text, w.git("show", done.Ref+file))
				}
				if c.check != nil {
					c.check(t, w, wt, done)
				}
				assert.NoDirExists(t, wt.Top)
				assert.NotContains(t, w.git("worktree", "list"), wt.Top)
				assert.Empty(t, must(w.List(t.Context()))(t))
			}
			w.git("fsck", "--strict")
		})
	}
}

func TestDiscardOfAnUnknownWorktree(t *testing.T) {
	t.Parallel()
	w := newRepository(t, map[string]string{"a": "1"}).open()
	for _, wt := range []worktree.Worktree{
		{}, {Name: "..", Branch: "duet/..", Top: w.home}, {Name: "x", Branch: "main", Top: filepath.Join(w.opts.Parent, "x")},
	} {
		require.ErrorContains(t, errorOf(w.Discard(t.Context(), wt, worktree.DiscardOptions{Force: true})), "is no worktree of")
	}
	_, err := w.Discard(t.Context(), worktree.Worktree{Name: "x", Branch: "duet/x", Top: w.dir}, worktree.DiscardOptions{Force: true})
	require.Error(t, err)
	assert.FileExists(t, filepath.Join(w.dir, "a"))
}

func TestListOfOthers(t *testing.T) {
	t.Parallel()
	w := newRepository(t, map[string]string{"a": "1"})
	wt := w.create("x", nil)
	gone := w.create("y", nil)
	require.NoError(t, os.RemoveAll(gone.Top))
	w.git("worktree", "add", "-q", "../users")
	list := must(w.List(t.Context()))(t)
	assert.Equal(t, []worktree.Worktree{wt, gone}, list)
	w.opts.Parent = filepath.Join(w.home, "others")
	list = must(w.open().List(t.Context()))(t)
	assert.Empty(t, list)
	_, err := w.Create(t.Context(), "z", "missing")
	require.ErrorContains(t, err, "is no commit")
	assert.False(t, errors.Is(err, worktree.ErrGone))
}

// Discard keeps the work before the cleanup deletes it.
func TestCleanup(t *testing.T) {
	t.Parallel()
	w := newRepository(t, map[string]string{"a": "1\n"})
	wt := w.create("x", map[string]string{"new": "work\n"})
	calls := 0
	opts := worktree.DiscardOptions{Cleanup: func(context.Context) {
		calls++
		testkit.WriteFiles(t, wt.Top, map[string]string{"new": ""})
	}}
	require.ErrorAs(t, errorOf(w.Discard(t.Context(), wt, opts)), new(*worktree.LossError))
	assert.Zero(t, calls)
	opts.Force = true
	done := must(w.Discard(t.Context(), wt, opts))(t)
	assert.Equal(t, 1, calls)
	assert.Equal(t, "work\n", w.git("show", done.Ref+":new"))
	assert.NoDirExists(t, wt.Top)
}

// A worktree still works after a move of its repository and of the worktrees' directory.
func TestMoved(t *testing.T) {
	t.Parallel()
	for name, move := range map[string]func(w *world){
		"repository": func(w *world) { w.opts.Dir = filepath.Join(w.home, "elsewhere") },
		"both": func(w *world) {
			w.opts.Dir, w.opts.Parent = filepath.Join(w.home, "elsewhere"), filepath.Join(w.home, "trees")
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newRepository(t, map[string]string{"a": "1\n"})
			wt := w.create("x", nil)
			w.commit(wt.Top, map[string]string{"a": "2\n"})
			testkit.WriteFiles(t, wt.Top, map[string]string{"new": "n\n"})
			from := w.opts
			move(w)
			require.NoError(t, os.Rename(from.Dir, w.opts.Dir))
			if from.Parent != w.opts.Parent {
				require.NoError(t, os.Rename(from.Parent, w.opts.Parent))
			}
			w.dir = w.opts.Dir
			w.open()
			list := must(w.List(t.Context()))(t)
			require.Len(t, list, 1)
			assert.Equal(t, filepath.Join(w.opts.Parent, "x"), list[0].Top)
			assert.Equal(t, "?? new\n", gitIn(t, list[0].Top, "status", "--porcelain"))
			w.land(list[0], worktree.Merge)
			assert.Equal(t, map[string]string{"a": "2\n", "new": "n\n"}, testkit.ReadFiles(t, w.dir))
			must(w.Discard(t.Context(), list[0], worktree.DiscardOptions{}))(t)
			assert.NoDirExists(t, list[0].Top)
			w.healthy()
		})
	}
}

// The work in a submodule of a worktree is nowhere else: discarding the worktree without force keeps it.
func TestWorkInASubmodule(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		work func(w *world, top, lib string)
		want []string
	}{
		"none":           {func(*world, string, string) {}, nil},
		"a changed file": {func(w *world, _, lib string) { testkit.WriteFiles(w, lib, map[string]string{"a": "2\n"}) }, []string{"lib/"}},
		"a new file":     {func(w *world, _, lib string) { testkit.WriteFiles(w, lib, map[string]string{"b": "2\n"}) }, []string{"lib/"}},
		"a commit":       {func(w *world, _, lib string) { w.commit(lib, map[string]string{"a": "2\n"}) }, []string{"lib/"}},
		"a commit that is landed": {func(w *world, top, lib string) {
			w.commit(lib, map[string]string{"a": "2\n"})
			w.commit(top, nil)
		}, []string{"lib/"}},
		"a pushed commit": {func(w *world, top, lib string) {
			w.commit(lib, map[string]string{"a": "2\n"})
			gitIn(w, lib, "push", "-q", "origin", "HEAD:refs/heads/pushed")
			w.commit(top, nil)
		}, nil},
		"a stash": {func(w *world, _, lib string) {
			testkit.WriteFiles(w, lib, map[string]string{"a": "2\n"})
			gitIn(w, lib, "stash", "--quiet")
		}, []string{"lib/"}},
		"a tag": {func(w *world, _, lib string) {
			w.commit(lib, map[string]string{"a": "2\n"})
			gitIn(w, lib, "tag", "mine")
		}, []string{"lib/"}},
		"a worktree of the same repository": {func(w *world, top, _ string) {
			gitIn(w, top, "worktree", "add", "-q", "-b", "other", "own")
			gitIn(w, top, "add", "own")
		}, []string{"own/"}},
		"a new repository": {func(w *world, top, _ string) {
			gitIn(w, top, "init", "-q", "own")
			w.commit(filepath.Join(top, "own"), map[string]string{"a": "1\n"})
			w.commit(top, nil)
		}, []string{"own/"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newRepository(t, map[string]string{"a": "1\n"})
			gitIn(t, w.home, "clone", "-q", w.dir, "lib")
			w.git("submodule", "--quiet", "add", filepath.Join(w.home, "lib"), "lib")
			w.git("commit", "-q", "-m", "lib")
			wt := w.create("x", nil)
			gitIn(t, wt.Top, "submodule", "--quiet", "update", "--init")
			lib := filepath.Join(wt.Top, "lib")
			c.work(w, wt.Top, lib)
			l := w.land(wt, worktree.Merge)
			assert.Equal(t, c.want, l.Nested)
			assert.Equal(t, c.want, must(w.Changes(t.Context(), wt, 0))(t).Nested.First)
			assert.Equal(t, c.want, must(w.Losses(t.Context(), wt))(t).Nested.First)
			before := testkit.ReadFiles(t, lib)
			_, err := w.Discard(t.Context(), wt, worktree.DiscardOptions{})
			if c.want == nil {
				require.NoError(t, err)
				assert.NoDirExists(t, wt.Top)
				return
			}
			var loss *worktree.LossError
			require.ErrorAs(t, err, &loss)
			assert.Equal(t, before, testkit.ReadFiles(t, lib))
			must(w.Discard(t.Context(), wt, worktree.DiscardOptions{Force: true}))(t)
			entries := must(os.ReadDir(w.opts.Parent))(t)
			assert.Len(t, entries, 1, "%v", entries)
		})
	}
}

// A copy of a repository does not have the worktrees of the original.
func TestCopiedRepository(t *testing.T) {
	t.Parallel()
	w := newRepository(t, map[string]string{"a": "1\n"})
	wt := w.create("x", map[string]string{"a": "2\n"})
	elsewhere := filepath.Join(w.home, "copy")
	require.NoError(t, os.CopyFS(elsewhere, os.DirFS(w.dir)))
	original := w.opts
	w.opts.Dir = elsewhere
	w.opts.Parent = filepath.Join(w.home, "other")
	assert.Empty(t, must(w.open().List(t.Context()))(t))
	w.opts = original
	w.open().land(wt, worktree.Merge)
	assert.Equal(t, "2\n", testkit.ReadFiles(t, w.dir)["a"])
}

func TestContaining(t *testing.T) {
	parent := filepath.Join(t.TempDir(), "worktrees")
	for _, c := range []struct{ path, top string }{
		{filepath.Join(parent, "fix"), filepath.Join(parent, "fix")},
		{filepath.Join(parent, "fix", "sub", "a.txt"), filepath.Join(parent, "fix")},
		{parent, ""},
		{filepath.Join(parent, ".duet-0123", "common"), ""}, // Duet's own directory
		{filepath.Join(parent, "..", "worktrees-2", "fix"), ""},
		{filepath.Dir(parent), ""},
		{"fix", ""},
	} {
		top, found := worktree.Containing(parent, c.path)
		assert.Equal(t, c.top != "", found, c.path)
		if found {
			assert.Equal(t, c.top, top)
			assert.Equal(t, "duet/fix", worktree.BranchOf(top))
		}
	}
	_, found := worktree.Containing("", "fix")
	assert.False(t, found)
}
