//go:build unix

package worktree_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/project"
	"github.com/duet-rpc/duet-rpc/internal/testkit"
	"github.com/duet-rpc/duet-rpc/internal/worktree"
)

// Another user could have planted files there, or plant them later.
func TestPlantedParent(t *testing.T) {
	t.Parallel()
	for name, plant := range map[string]func(t *testing.T, parent string){
		"a link": func(t *testing.T, parent string) {
			require.NoError(t, os.Mkdir(parent+"-real", 0o700))
			require.NoError(t, os.Symlink(parent+"-real", parent))
		},
		"a directory of another user": func(t *testing.T, parent string) {
			require.NoError(t, os.Mkdir(parent, 0o700))
			if os.Chown(parent, 12345, 12345) != nil {
				testkit.SkipMissing(t, "only root can give a directory away")
			}
		},
		"a directory of another user around it": func(t *testing.T, parent string) {
			require.NoError(t, os.Mkdir(parent, 0o700))
			if os.Chown(filepath.Dir(parent), 12345, 12345) != nil {
				testkit.SkipMissing(t, "only root can give a directory away")
			}
		},
		"a file": func(t *testing.T, parent string) { require.NoError(t, os.WriteFile(parent, nil, 0o600)) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newRepository(t, map[string]string{"a": "1\n"})
			w.opts.Parent = filepath.Join(w.home, "state", "worktrees")
			require.NoError(t, os.Mkdir(filepath.Dir(w.opts.Parent), 0o700))
			plant(t, w.opts.Parent)
			var private *project.NotPrivateError
			require.ErrorAs(t, errorOf(worktree.Open(t.Context(), w.opts)), &private)
		})
	}
	w := newRepository(t, map[string]string{"a": "1\n"})
	require.NoError(t, os.Mkdir(w.opts.Parent, 0o777))
	require.NoError(t, os.Chmod(w.opts.Parent, 0o777))
	w.open()
	info := must(os.Stat(w.opts.Parent))(t)
	assert.Equal(t, os.FileMode(0o700), info.Mode().Perm())
}

func TestHostileRepositoryRunsNothing(t *testing.T) {
	t.Parallel()
	for _, method := range mainMethods() {
		t.Run(string(method), func(t *testing.T) {
			t.Parallel()
			w := newRepository(t, map[string]string{"a": "1\n2\n3\n4\n5\n6\n7\n", "b": "2", ".gitattributes": "* filter=evil diff=evil merge=evil text\nb filter=both\n"})
			gitIn(t, w.home, "clone", "-q", w.dir, "from")
			w.git("submodule", "--quiet", "add", filepath.Join(w.home, "from"), "module")
			w.git("commit", "-q", "-m", "module")
			ran := filepath.Join(w.home, "ran")
			script := testkit.Program(t, filepath.Join(w.home, "script"), "#!/bin/sh\necho \"$0 $*\" >> "+ran+"\ncat\n")
			testkit.HostileRepository(t, w.dir, script)
			testkit.HostileRepository(t, filepath.Join(w.dir, "module"), script)
			w.open()

			wt := w.create("x", map[string]string{"a": "1\n2\n3\n4\n5\n6\n8\n", "b": "", "c/d": "new"})
			// The agent clones the submodule, and a repository next to it.
			for _, dir := range []string{"module", "nested"} {
				require.NoError(t, os.RemoveAll(filepath.Join(wt.Top, dir)))
				gitIn(t, w.home, "clone", "-q", "from", filepath.Join(wt.Top, dir))
				testkit.HostileRepository(t, filepath.Join(wt.Top, dir), script)
				testkit.WriteFiles(t, filepath.Join(wt.Top, dir), map[string]string{"a": "dirty"})
			}
			testkit.WriteFiles(t, w.dir, map[string]string{".env": "e", "module/a": "dirty"})
			_ = os.Remove(ran)
			must(w.CopyFiles(t.Context(), wt, []string{".env"}))(t)
			if method != worktree.Patch { // both sides change, so that git merges contents
				other := w.create("other", map[string]string{"a": "0\n2\n3\n4\n5\n6\n7\n"})
				w.land(other, worktree.Squash)
			}
			must(w.Changes(t.Context(), wt, 1000))(t)
			w.land(wt, method)
			assert.Equal(t, "new", testkit.ReadFiles(t, w.dir)["c/d"])
			testkit.WriteFiles(t, wt.Top, map[string]string{"lost": "l"})
			must(w.Losses(t.Context(), wt))(t)
			must(w.Discard(t.Context(), wt, worktree.DiscardOptions{Force: true}))(t)
			text, _ := os.ReadFile(ran)
			assert.Empty(t, string(text))
			assert.NoFileExists(t, filepath.Join(w.dir, ".git", "trace"))
			w.git("-c", "core.worktree="+w.dir, "update-ref", "refs/x", "HEAD")
			assert.FileExists(t, ran, "the marker can run")
		})
	}
}

// The user's filters run in each project, and the repository's filters only in a trusted one. Hooks
// never run.
func TestFilters(t *testing.T) {
	t.Parallel()
	for _, trusted := range []bool{false, true} {
		w := newRepository(t, map[string]string{"u.users": "plain\n", "r.repo": "plain\n", ".gitattributes": "*.users filter=users\n*.repo filter=repo\n"})
		w.git("config", "filter.repo.smudge", "sed s/plain/repo/")
		w.git("config", "filter.repo.clean", "sed s/repo/plain/")
		ran := filepath.Join(w.home, "ran")
		for _, hook := range []string{"post-checkout", "reference-transaction", "post-merge", "post-index-change"} {
			testkit.Program(t, filepath.Join(w.dir, ".git", "hooks", hook), "#!/bin/sh\necho $0 >> "+ran+"\n")
		}
		w.opts.Trusted = trusted
		wt := w.create("x", nil)
		has := testkit.ReadFiles(t, wt.Top)
		assert.Equal(t, "users\n", has["u.users"])
		assert.Equal(t, map[bool]string{true: "repo\n", false: "plain\n"}[trusted], has["r.repo"])
		testkit.WriteFiles(t, wt.Top, map[string]string{"u.users": "users\nmore\n", "new.repo": "repo\n", "plain.text": "repo\n"})
		require.NoError(t, os.Symlink("new.repo", filepath.Join(wt.Top, "link.repo")))
		landed := w.land(wt, worktree.Merge)
		if trusted {
			assert.Equal(t, "plain\n", w.git("show", "main:new.repo"))
			assert.Empty(t, landed.Unfiltered)
		} else {
			assert.Equal(t, "repo\n", w.git("show", "main:new.repo"))
			assert.Equal(t, worktree.Listing{Count: 1, First: []string{"new.repo"}}, landed.Unfiltered)
		}
		assert.Equal(t, "users\nmore\n", testkit.ReadFiles(t, w.dir)["u.users"])
		assert.NoFileExists(t, ran)
		assert.Equal(t, "plain\nmore\n", w.git("show", "main:u.users"))
	}
}

// The Git variables of a hub that a Git hook started have no effect.
func TestEnvironmentOfTheCallerIsNotUsed(t *testing.T) {
	w := newRepository(t, map[string]string{"a": "1"})
	for name, value := range map[string]string{
		"GIT_DIR": "/nonexistent", "GIT_INDEX_FILE": "/nonexistent", "GIT_WORK_TREE": w.home, "GIT_OBJECT_DIRECTORY": w.home,
		"GIT_EXTERNAL_DIFF": "false", "GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "core.bare", "GIT_CONFIG_VALUE_0": "true", "GIT_COMMON_DIR": "/",
	} {
		t.Setenv(name, value)
	}
	wt := w.create("x", map[string]string{"a": "2"})
	w.land(wt, worktree.Squash)
	assert.Equal(t, "2", testkit.ReadFiles(t, w.dir)["a"])
}
