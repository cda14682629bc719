package host

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/config"
	"github.com/duet-rpc/duet-rpc/internal/project"
)

// The configuration of a repository names programs. Only a trusted file of the project lets them run:
// neither its absence nor a file that needs no trust does.
func TestWorktreesOfATrustedProject(t *testing.T) {
	home := t.TempDir()
	t.Setenv("XDG_STATE_HOME", filepath.Join(home, "state"))
	t.Setenv("XDG_CONFIG_HOME", filepath.Join(home, "config"))
	p := project.Project{Root: t.TempDir(), StateDir: filepath.Join(home, "state", "duet", "projects", "x")}
	assert.False(t, isTrusted(p))
	require.NoError(t, os.WriteFile(p.ConfigFile(), []byte("[limits]\nmax_turns = 1\n"), 0o600))
	assert.False(t, isTrusted(p))
	found, err := config.Inspect(p.ConfigFile(), os.Getenv)
	require.NoError(t, err)
	known, err := config.DefaultTrust(os.Getenv)
	require.NoError(t, err)
	require.NoError(t, found.Trust(known))
	assert.True(t, isTrusted(p))
	require.NoError(t, os.WriteFile(p.ConfigFile(), []byte("[limits]\nmax_turns = 2\n"), 0o600))
	assert.False(t, isTrusted(p))

	assert.Equal(t, filepath.Join(home, "state", "duet", "worktrees", "x"), project.WorktreesDir(p.StateDir))
}
