//go:build unix

package worktree_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/testkit"
	"github.com/duet-rpc/duet-rpc/internal/worktree"
)

// helper returns a process that performs the task.
func (w *world) helper(task helperTask) *exec.Cmd {
	task.Options = w.opts
	text := must(json.Marshal(task))(w)
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), helperVariable+"="+string(text))
	return cmd
}

// killedGit returns a Git program that runs a script once, instead of the nth command with the
// name. The script then kills the program or its parent process.
func killedGit(w *world, name string, n int, script string) string {
	git := testkit.NeedTool(w, "git")
	count := filepath.Join(w.home, fmt.Sprint("count", rand.Int()))
	return testkit.Program(w, filepath.Join(w.home, fmt.Sprint("git", rand.Int())), `#!/bin/sh
if [ "$1" = `+name+` ] && [ ! -e `+count+`.done ]; then
	echo x >> `+count+`
	if [ $(wc -l < `+count+`) = `+fmt.Sprint(n)+` ]; then
		touch `+count+`.done
		git=`+git+`
		`+script+`
	fi
fi
exec `+git+` "$@"
`)
}

const (
	killedBefore   = `kill -9 $$`
	killedAfter    = `$git "$@" > /dev/null; kill -9 $$`
	hubKilled      = `kill -9 $PPID; kill -9 $$`
	hubKilledAfter = `kill -9 $PPID; exec $git "$@"` // git continues
)

// readsHalf simulates a killed git read-tree: some files are written, one is truncated, one is
// removed.
const readsHalf = `printf 2 > a; rm -f b z; mkdir -p new; printf n > new/file; kill -9 $$`

// The test kills each git process of a landing, and the landing process. Afterwards the user's tree
// is unchanged or the landing is complete. The next landing completes it. The default tier kills each
// process for one of the methods and in one of the ways, `make soak` for all.
func TestLandIsKilled(t *testing.T) {
	t.Parallel()
	for turn, method := range mainMethods() {
		steps := []string{"read-tree", "update-ref"}
		if method == worktree.Squash || method == worktree.Patch {
			steps = append(steps, "commit-tree", "update-index", "write-tree", "merge-tree", "status")
		}
		for place, name := range steps {
			times := 2
			if name == "merge-tree" {
				times = 1
			}
			if !testkit.Soak && place > 0 && (place+turn)%2 != 0 {
				continue
			}
			for n := range times {
				t.Run(fmt.Sprint(method, "/", name, n), func(t *testing.T) {
					t.Parallel()
					scripts := []string{killedBefore, killedAfter, hubKilled, hubKilledAfter}
					if name == "read-tree" && n == 1 {
						scripts = append(scripts, readsHalf, strings.ReplaceAll(readsHalf, "kill -9 $$", hubKilled))
					}
					all := scripts
					if name == "read-tree" && n == 1 {
						all = append(all, scripts...)
					}
					for i, script := range all {
						if !testkit.Soak && (i+place+2*n+2*turn)%4 != 0 {
							continue
						}
						w := newRepository(t, map[string]string{"a": "1\n", "b": "1\n", "z": "1\n", "gone": "x\n", "keep": "k\n"})
						wt := w.create("x", nil)
						w.commit(wt.Top, map[string]string{"a": "2\n", "gone": ""})
						testkit.WriteFiles(t, wt.Top, map[string]string{"b": "x 2\n", "new/file": "new\n", "z": "-> a"})
						w.commit(w.dir, map[string]string{"users": "u\n"})
						testkit.WriteFiles(t, w.dir, map[string]string{"keep": "dirty\n", "untracked": "u\n"})
						before := w.state()
						w.opts.Git = killedGit(w, name, n+1, script)
						_ = w.helper(helperTask{Do: "land", Worktree: wt, Method: method}).Run()

						w.opts.Git = ""
						if i >= len(scripts) { // the user does what git advises
							_ = os.Remove(filepath.Join(w.dir, ".git", "index.lock"))
						}
						w.open() // finishes or reverts the landing
						w.healthy()
						landed := map[string]string{
							"a": "2\n", "b": "x 2\n", "new/file": "new\n", "z": "-> a", "keep": "dirty\n", "users": "u\n", "untracked": "u\n",
						}
						has := w.state()
						if testkit.ReadFiles(t, w.dir)["a"] == "1\n" {
							assert.Equal(t, before["files"], has["files"], script)
							assert.Equal(t, before["index"], has["index"])
							assert.Equal(t, before["status"], has["status"])
							assert.Equal(t, before["head"], has["head"])
						} else {
							assert.Equal(t, landed, testkit.ReadFiles(t, w.dir), script)
							if method != worktree.Patch {
								assert.Equal(t, " M keep\n?? untracked\n", w.git("status", "--porcelain"), script)
							}
						}
						w.land(wt, method)
						assert.Equal(t, landed, testkit.ReadFiles(t, w.dir), script)
						if method != worktree.Patch {
							assert.Equal(t, " M keep\n?? untracked\n", w.git("status", "--porcelain"))
						}
						assert.Equal(t, map[string]string{"a": "2\n", "b": "x 2\n", "new/file": "new\n", "z": "-> a", "keep": "k\n"}, testkit.ReadFiles(t, wt.Top))
						w.healthy()
					}
				})
			}
		}
	}
}

// The user has deleted the worktree that a killed process was changing.
func TestKilledInAWorktreeThatIsGone(t *testing.T) {
	t.Parallel()
	w := newRepository(t, map[string]string{"a": "1\n"})
	wt := w.create("x", nil)
	w.opts.Git = killedGit(w, "update-ref", 2, hubKilled)
	testkit.WriteFiles(t, wt.Top, map[string]string{"a": "2\n"})
	_ = w.helper(helperTask{Do: "land", Worktree: wt, Method: worktree.Squash}).Run()
	require.True(t, worktree.IsUnfinished(w.opts.Parent))
	w.git("worktree", "remove", "--force", wt.Top)
	w.opts.Git = ""
	w.open()
	assert.False(t, worktree.IsUnfinished(w.opts.Parent))
	w.healthy()
}

func TestRenewIsKilled(t *testing.T) {
	t.Parallel()
	for turn, name := range []string{"read-tree", "read-tree", "update-ref"} {
		for i, script := range []string{killedBefore, killedAfter, hubKilled, hubKilledAfter} {
			if testkit.Soak || i%2 == turn%2 {
				t.Run(fmt.Sprint(name, turn%2, "/", i), func(t *testing.T) {
					t.Parallel()
					w := newRepository(t, map[string]string{"a": "1\n", "gone": "x\n"})
					wt := w.create("x", map[string]string{"b": "b\n"})
					w.land(wt, worktree.Squash)
					w.commit(w.dir, map[string]string{"a": "2\n", "gone": "", "new": "n\n"})
					w.opts.Git = killedGit(w, name, turn%2+1, script)
					_ = w.helper(helperTask{Do: "renew", Worktree: wt}).Run()
					w.opts.Git = ""
					w.open()
					assert.Empty(t, gitIn(t, wt.Top, "status", "--porcelain"))
					must(w.Renew(t.Context(), wt))(t)
					assert.Equal(t, testkit.ReadFiles(t, w.dir), testkit.ReadFiles(t, wt.Top))
					assert.Empty(t, gitIn(t, wt.Top, "status", "--porcelain"))
					w.healthy()
				})
			}
		}
	}
}

func TestCreateIsKilled(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"worktree", "reset", "for-each-ref"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newRepository(t, map[string]string{"a": "1\n", "b": "1\n"})
			before := w.state()
			for _, script := range []string{killedBefore, killedAfter, hubKilled, hubKilledAfter} {
				w.opts.Git = killedGit(w, name, 1, script)
				_ = w.helper(helperTask{Do: "create"}).Run()
				w.opts.Git = ""
				w.open()
				assert.Equal(t, before, w.state(), script)
				entries := must(os.ReadDir(w.opts.Parent))(t)
				assert.Len(t, entries, 1, "%s: %v", script, entries) // the directory with the journal
				w.healthy()
				wt := w.create("helper", nil)
				assert.Equal(t, "helper", wt.Name)
				must(w.Discard(t.Context(), wt, worktree.DiscardOptions{}))(t)
			}
		})
	}
}

func TestDiscardIsKilled(t *testing.T) {
	t.Parallel()
	for turn, name := range []string{"update-ref", "update-ref", "update-index", "write-tree", "commit-tree", "rev-list"} {
		for i, script := range []string{killedBefore, killedAfter, hubKilled, hubKilledAfter} {
			if testkit.Soak || i%2 == turn%2 {
				n := 0
				if name == "update-ref" {
					n = turn
				}
				t.Run(fmt.Sprint(name, n, "/", i), func(t *testing.T) {
					t.Parallel()
					w := newRepository(t, map[string]string{"a": "1\n"})
					wt := w.create("x", nil)
					w.commit(wt.Top, map[string]string{"b": "b"})
					testkit.WriteFiles(t, wt.Top, map[string]string{"c": "c"})
					w.opts.Git = killedGit(w, name, n+1, script)
					_ = w.helper(helperTask{Do: "discard", Worktree: wt}).Run()
					w.opts.Git = ""
					must(w.open().Discard(t.Context(), wt, worktree.DiscardOptions{Force: true}))(t)
					assert.NoDirExists(t, wt.Top)
					assert.Empty(t, w.git("branch", "--list", "duet/*"))
					assert.NotContains(t, w.git("worktree", "list"), wt.Top)
					refs := strings.Fields(w.git("for-each-ref", "--format=%(refname)", "refs/duet"))
					assert.Equal(t, []string{"refs/duet/discarded/x"}, refs)
					assert.Equal(t, "c", w.git("show", refs[0]+":c"))
					assert.Equal(t, "b", w.git("show", refs[0]+":b"))
					w.healthy()
				})
			}
		}
	}
}

// A git process that outlives the landing process keeps the lock until it ends.
func TestGitOutlivesTheProcess(t *testing.T) {
	t.Parallel()
	w := newRepository(t, map[string]string{"a": "1\n"})
	wt := w.create("x", map[string]string{"a": "2\n"})
	release := filepath.Join(w.home, "release")
	w.opts.Git = killedGit(w, "read-tree", 2, "kill -9 $PPID; until [ -e "+release+" ]; do sleep 0.01; done; exec $git \"$@\"")
	_ = w.helper(helperTask{Do: "land", Worktree: wt, Method: worktree.Squash}).Run()
	locks := must(filepath.Glob(filepath.Join(w.opts.Parent, ".duet-*", "lock")))(t)
	require.Len(t, locks, 1)
	lock := must(os.Open(locks[0]))(t)
	defer lock.Close()
	require.ErrorIs(t, syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB), syscall.EWOULDBLOCK)
	require.NoError(t, os.WriteFile(release, nil, 0o600))
	w.opts.Git = ""
	w.open() // waits for git
	w.healthy()
	assert.Equal(t, "1\n", testkit.ReadFiles(t, w.dir)["a"], "HEAD has not moved, so the landing is reverted")
	w.land(wt, worktree.Squash)
	assert.Equal(t, "2\n", testkit.ReadFiles(t, w.dir)["a"])
}
