package config_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/config"
)

// A project's file sets or strengthens the sandbox of an agent, once it is trusted, and never weakens it.
func TestStrongerSandboxWins(t *testing.T) {
	for _, c := range []struct{ user, project, want string }{
		{"", "workspace", "workspace"}, {"workspace", "offline", "offline"}, {"offline", "workspace", "offline"}, {"offline", "", "offline"},
	} {
		w := newWorld(t)
		agent := func(level string) string {
			text := "[agents.mine]\ndriver = \"command\"\ncommand = [\"mine\"]\n"
			if level != "" {
				text += "sandbox = \"" + level + "\"\n"
			}
			return text
		}
		w.write(w.user, agent(c.user))
		w.write(w.project, agent(c.project))
		assert.Equal(t, c.user, w.load().Agents["mine"].Sandbox, "%+v", c)
		w.trusted()
		assert.Equal(t, c.want, w.load().Agents["mine"].Sandbox, "%+v", c)
	}
}

func TestOnlyTheUserAddsPathsToASandbox(t *testing.T) {
	w := newWorld(t)
	w.write(w.user, "[agents.codex]\nsandbox_write = [\"~/.cache/go-build\", \"/srv\"]\n")
	codex := w.load().Agents["codex"]
	home := w.env["HOME"]
	assert.Equal(t, []string{filepath.Join(home, ".cache", "go-build"), "/srv"}, codex.SandboxWrite)
	own := filepath.Join(home, ".codex")
	assert.Equal(t, append([]string{own}, codex.SandboxWrite...), codex.SandboxWrites(w.env), "an unset CODEX_HOME adds nothing")
	_, err := os.Stat(own)
	require.NoError(t, err, "the agent cannot make it")

	w.write(w.project, "[agents.codex]\nsandbox_write = [\"/\"]\n")
	_, err = config.Load(w.sources())
	assert.ErrorContains(t, err, "belongs only in your own configuration")
	w.write(w.project, "")
	w.write(w.user, "[agents.codex]\nsandbox_write = [\"cache\"]\nsandbox = \"strong\"\n")
	_, err = config.Load(w.sources())
	assert.ErrorContains(t, err, "absolute or from ~/ on")
	assert.ErrorContains(t, err, `"workspace" or "offline"`)
}
