package hub

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/e2e"
)

// plainAgent is an agent that runs its prompt in a shell.
const plainAgent = `
[agents.plain]
driver = "command"
history = "none"
command = ["/bin/sh", "-c", "exec 2>&1; eval \"$0\"", "{prompt}"]
`

// standIn puts a program named bwrap first on the site's PATH, in front of nothing else; "" puts none
// there.
func standIn(s *e2e.Site, script string) {
	s.T.Helper()
	dir := filepath.Join(s.Home, "bin")
	require.NoError(s.T, os.MkdirAll(dir, 0o700))
	s.Env = append(s.Env, "PATH="+dir)
	if script != "" {
		require.NoError(s.T, os.WriteFile(filepath.Join(dir, "bwrap"), []byte("#!/bin/sh\n"+script+"\n"), 0o700))
	}
}

// An agent that is to run in a sandbox never runs without one.
func TestNoSandboxNoAgent(t *testing.T) {
	t.Run("no bwrap", func(t *testing.T) {
		s := e2e.NewSite(e2e.Parallel(t), plainAgent)
		standIn(s, "")
		s.Refuses("install the package bubblewrap", "prompt", "--agent", "plain", "--sandbox", "--yes", "echo > ran")
		assert.NoFileExists(t, filepath.Join(s.Root, "ran"))
		assert.NotContains(t, s.Run("session", "list", "--json"), "echo", "no session is stored")
	})
	t.Run("refused by the system", func(t *testing.T) {
		s := e2e.NewSite(e2e.Parallel(t), plainAgent+"sandbox = \"offline\"\n")
		standIn(s, "echo 'bwrap: No permissions to create new namespace' >&2; exit 1")
		s.Refuses("No permissions to create new namespace", "prompt", "--agent", "plain", "--background", "echo > ran")
		s.Refuses("user namespaces", "prompt", "--agent", "plain", "--yes", "echo > ran")
		assert.NoFileExists(t, filepath.Join(s.Root, "ran"))
	})
	t.Run("later", func(t *testing.T) {
		s := e2e.NewSite(e2e.Parallel(t), plainAgent)
		// It works when it is tried, and then for one program.
		standIn(s, `case "$*" in *"exit 0"*) exit 0;; esac
if test -e `+s.Home+`/broken; then echo 'bwrap: broken' >&2; exit 1; fi
while test "$1" != --; do shift; done; shift; exec "$@" 3>&-`)
		s.Daemon()
		s.Run("prompt", "--agent", "plain", "--sandbox", "--yes", "echo > first")
		assert.FileExists(t, filepath.Join(s.Root, "first"))
		e2e.WriteFile(t, filepath.Join(s.Home, "broken"), "")
		s.Refuses("bwrap: broken", "prompt", "--continue", "1", "--yes", "echo > ran")
		require.NoError(t, os.Remove(filepath.Join(s.Home, "bin", "bwrap")))
		s.Refuses("install the package bubblewrap", "prompt", "--continue", "1", "--yes", "echo > ran")
		s.Refuses("install the package bubblewrap", "prompt", "--fork", "1", "--yes", "echo > ran")
		assert.NoFileExists(t, filepath.Join(s.Root, "ran"))
		s.Run("daemon", "stop")
	})
}
