//go:build unix

package main_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/testkit"
)

// While git prepares the worktree of a new session, the connection serves other requests. A launch that
// is sent again meanwhile starts nothing.
func TestRequestsBesideALaunchInAWorktree(t *testing.T) {
	testkit.NeedTool(t, "git")
	s, editor := newEditorSite(parallel(t))
	open := filepath.Join(s.home, "open")
	// The filter of the user's own configuration runs for each file that git checks out.
	writeFile(t, filepath.Join(s.home, ".gitconfig"), "[filter \"slow\"]\n\tsmudge = \"until test -e '"+open+"'; do sleep 0.05; done; cat\"\n")
	writeFile(t, filepath.Join(s.root, ".gitattributes"), "*.txt filter=slow\n")
	writeFile(t, filepath.Join(s.root, "a.txt"), "one\n")
	for _, args := range [][]string{{"init", "-q"}, {"add", "."}, {"-c", "user.name=u", "-c", "user.email=u@localhost", "commit", "-qm", "first"}} {
		git := exec.Command("git", args...)
		git.Dir, git.Env = s.root, append(cleanEnvironment(), "HOME="+s.home)
		out, err := git.CombinedOutput()
		require.NoError(t, err, string(out))
	}
	launch := object{"query": "quiet", "worktree": true, "launch_id": "019d4a1e-0000-7000-8000-000000000001"}
	sessions := make(chan launched, 2)
	for range cap(sessions) {
		go func() {
			var l launched
			assert.NoError(t, editor.try("launchSession", launch, &l))
			sessions <- l
		}()
	}
	require.Eventually(t, func() bool { // git checks out the worktree
		found, _ := filepath.Glob(filepath.Join(s.home, "state", "duet", "worktrees", "*", "quiet"))
		return len(found) > 0
	}, watchdog/3, pollEvery)
	for range 3 { // behind the launches, whichever way they have gone
		var list object
		editor.call("listSessions", object{}, &list)
		assert.Empty(t, list["sessions"])
	}
	require.NoError(t, os.WriteFile(open, nil, 0o600))
	first := <-sessions
	editor.completes(first)
	assert.Equal(t, first, <-sessions)
	found, err := filepath.Glob(filepath.Join(s.home, "state", "duet", "worktrees", "*", "quiet*"))
	require.NoError(t, err)
	assert.Len(t, found, 1)
}
