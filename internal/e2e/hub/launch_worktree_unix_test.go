//go:build unix

package hub

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/e2e"
	"github.com/duet-rpc/duet-rpc/internal/testkit"
)

// While git prepares the worktree of a new session, the connection serves other requests. A launch that
// is sent again meanwhile starts nothing.
func TestRequestsBesideALaunchInAWorktree(t *testing.T) {
	testkit.NeedTool(t, "git")
	s, editor := e2e.NewEditorSite(e2e.Parallel(t))
	open := filepath.Join(s.Home, "open")
	// The filter of the user's own configuration runs for each file that git checks out.
	e2e.WriteFile(t, filepath.Join(s.Home, ".gitconfig"), "[filter \"slow\"]\n\tsmudge = \"until test -e '"+open+"'; do sleep 0.05; done; cat\"\n")
	e2e.WriteFile(t, filepath.Join(s.Root, ".gitattributes"), "*.txt filter=slow\n")
	e2e.WriteFile(t, filepath.Join(s.Root, "a.txt"), "one\n")
	for _, args := range [][]string{{"init", "-q"}, {"add", "."}, {"-c", "user.name=u", "-c", "user.email=u@localhost", "commit", "-qm", "first"}} {
		git := exec.Command("git", args...)
		git.Dir, git.Env = s.Root, append(e2e.CleanEnvironment(), "HOME="+s.Home)
		out, err := git.CombinedOutput()
		require.NoError(t, err, string(out))
	}
	launch := object{"query": "quiet", "worktree": true, "launch_id": "019d4a1e-0000-7000-8000-000000000001"}
	sessions := make(chan e2e.Launched, 2)
	for range cap(sessions) {
		go func() {
			var l e2e.Launched
			assert.NoError(t, editor.Try("launchSession", launch, &l))
			sessions <- l
		}()
	}
	require.Eventually(t, func() bool { // git checks out the worktree
		found, _ := filepath.Glob(filepath.Join(s.Home, "state", "duet", "worktrees", "*", "quiet"))
		return len(found) > 0
	}, e2e.Watchdog/3, e2e.PollEvery)
	for range 3 { // behind the launches, whichever way they have gone
		var list object
		editor.Call("listSessions", object{}, &list)
		assert.Empty(t, list["sessions"])
	}
	require.NoError(t, os.WriteFile(open, nil, 0o600))
	first := <-sessions
	editor.Completes(first)
	assert.Equal(t, first, <-sessions)
	found, err := filepath.Glob(filepath.Join(s.Home, "state", "duet", "worktrees", "*", "quiet*"))
	require.NoError(t, err)
	assert.Len(t, found, 1)
}
