//go:build clients && unix

package worktree_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/testkit"
	"github.com/duet-rpc/duet-rpc/internal/worktree"
)

// makeHostile makes each repository setting that can start a program start the script.
func makeHostile(t *testing.T, dir, script string) {
	gitDir := strings.TrimSpace(gitIn(t, dir, "rev-parse", "--absolute-git-dir"))
	hooks := filepath.Join(gitDir, "more-hooks")
	text := must(os.ReadFile(script))(t)
	for _, hook := range []string{
		"reference-transaction", "post-index-change", "pre-auto-gc", "post-checkout", "post-commit", "pre-commit", "post-rewrite", "post-merge", "pre-merge-commit",
		"commit-msg", "prepare-commit-msg", "fsmonitor-watchman", "query-watchman", "update", "post-update", "applypatch-msg", "pre-applypatch", "post-applypatch", "pre-rebase",
	} {
		for _, in := range []string{hooks, filepath.Join(gitDir, "hooks")} {
			require.NoError(t, os.MkdirAll(in, 0o755))
			require.NoError(t, os.WriteFile(filepath.Join(in, hook), text, 0o755))
		}
	}
	included := filepath.Join(gitDir, "included")
	require.NoError(t, os.WriteFile(included, []byte("[core]\n\tfsmonitor = "+script+"\n\thooksPath = "+hooks+"\n[filter \"evil\"]\n\tsmudge = "+script+"\n\tclean = "+script+"\n"), 0o644))
	set := func(key, value string) {
		gitIn(t, gitDir, "config", "--file", filepath.Join(gitDir, "config"), key, value)
	}
	for _, setting := range [][2]string{
		{"core.fsmonitor", script},
		{"core.hooksPath", hooks},
		{"core.pager", script},
		{"core.editor", script},
		{"sequence.editor", script},
		{"core.sshCommand", script},
		{"core.askPass", script},
		{"core.alternateRefsCommand", script},
		{"core.gitProxy", script},
		{"include.path", included},
		{"includeIf.gitdir:/.path", included},
		{"filter.evil.clean", script},
		{"filter.evil.smudge", script},
		{"filter.evil.required", "true"},
		{"filter.both.process", script},
		{"diff.evil.command", script},
		{"diff.evil.textconv", script},
		{"diff.external", script},
		{"merge.evil.driver", script},
		{"merge.default", "evil"},
		{"gpg.program", script},
		{"gpg.ssh.program", script},
		{"log.showSignature", "true"},
		{"tag.gpgSign", "true"},
		{"commit.gpgSign", "true"},
		{"gc.auto", "1"},
		{"gc.recentObjectsHook", script},
		{"credential.helper", script},
		{"uploadpack.packObjectsHook", script},
		{"remote.origin.url", "ext::" + script},
		{"remote.origin.uploadpack", script},
		{"remote.origin.promisor", "true"},
		{"remote.origin.partialclonefilter", "blob:none"},
		{"extensions.partialClone", "origin"},
		{"protocol.ext.allow", "always"},
		{"submodule.recurse", "true"},
		{"submodule.module.update", "!" + script},
		{"status.submoduleSummary", "true"},
		{"core.worktree", "/"},
		{"core.excludesFile", script},
		{"trace2.perfTarget", filepath.Join(gitDir, "trace")},
	} {
		set(setting[0], setting[1])
	}
	for _, command := range []string{"status", "update-index", "write-tree", "update-ref", "for-each-ref", "cat-file", "diff-tree", "config", "worktree", "reset", "read-tree", "merge-tree", "commit-tree", "rev-parse", "rev-list", "log", "cherry"} {
		set("alias."+command, "!"+script)
		set("pager."+command, script)
	}
	require.NoError(t, os.MkdirAll(filepath.Join(gitDir, "info"), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(gitDir, "info", "attributes"), []byte("* filter=evil diff=evil merge=evil\n"), 0o644))
}

func TestHostileRepositoryRunsNothing(t *testing.T) {
	t.Parallel()
	for _, method := range methods {
		t.Run(string(method), func(t *testing.T) {
			t.Parallel()
			w := newRepository(t, map[string]string{"a": "1\n2\n3\n4\n5\n6\n7\n", "b": "2", ".gitattributes": "* filter=evil diff=evil merge=evil text\nb filter=both\n"})
			gitIn(t, w.home, "clone", "-q", w.dir, "from")
			w.git("submodule", "--quiet", "add", filepath.Join(w.home, "from"), "module")
			w.git("commit", "-q", "-m", "module")
			ran := filepath.Join(w.home, "ran")
			script := testkit.Program(t, filepath.Join(w.home, "script"), "#!/bin/sh\necho \"$0 $*\" >> "+ran+"\ncat\n")
			makeHostile(t, w.dir, script)
			makeHostile(t, filepath.Join(w.dir, "module"), script)
			w.open()

			wt := w.create("x", map[string]string{"a": "1\n2\n3\n4\n5\n6\n8\n", "b": "", "c/d": "new"})
			// The agent clones the submodule, and a repository next to it.
			for _, dir := range []string{"module", "nested"} {
				require.NoError(t, os.RemoveAll(filepath.Join(wt.Top, dir)))
				gitIn(t, w.home, "clone", "-q", "from", filepath.Join(wt.Top, dir))
				makeHostile(t, filepath.Join(wt.Top, dir), script)
				write(t, filepath.Join(wt.Top, dir), map[string]string{"a": "dirty"})
			}
			write(t, w.dir, map[string]string{".env": "e", "module/a": "dirty"})
			_ = os.Remove(ran)
			must(w.CopyFiles(t.Context(), wt, []string{".env"}))(t)
			if method != worktree.Patch { // both sides change, so that git merges contents
				other := w.create("other", map[string]string{"a": "0\n2\n3\n4\n5\n6\n7\n"})
				w.land(other, worktree.Squash)
			}
			must(w.Changes(t.Context(), wt, 1000))(t)
			w.land(wt, method)
			assert.Equal(t, "new", testkit.ReadFiles(t, w.dir)["c/d"])
			write(t, wt.Top, map[string]string{"lost": "l"})
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
		write(t, wt.Top, map[string]string{"u.users": "users\nmore\n"})
		w.land(wt, worktree.Merge)
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
