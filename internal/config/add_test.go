package config_test

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/config"
)

// addable returns a user's file that can be added to.
func addable(t *testing.T, text string) (file string, add func(config.NewAgent) (*config.Edit, error)) {
	t.Helper()
	home, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	file = filepath.Join(home, "duet", "config.toml")
	if text != "" {
		require.NoError(t, os.Mkdir(filepath.Dir(file), 0o700))
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	}
	env := map[string]string{"XDG_CONFIG_HOME": home, "HOME": home}
	return file, func(a config.NewAgent) (*config.Edit, error) {
		return config.Add(a, func(name string) string { return env[name] })
	}
}

var theirs = config.NewAgent{Name: "theirs", Title: "It's \"theirs\"", Command: []string{"npx", "--yes", "theirs@1.2.3"}, Env: map[string]string{"A": "b"}}

func TestAddAppendsAndKeepsTheRest(t *testing.T) {
	for name, old := range map[string]string{
		"no file":            "",
		"an empty line":      "\n",
		"a comment":          "# mine\n",
		"no end of the line": "[agents.mine] # comment\ncommand = [\"mine\"]",
		"tables":             "default_agent = \"mine\"\n\n[agents.mine]\ncommand = [\"mine\"]\n\n[[rules]]\neffect = \"deny\"\ntool = \"x\"\n",
	} {
		t.Run(name, func(t *testing.T) {
			file, add := addable(t, old)
			a, err := add(theirs)
			require.NoError(t, err)
			now, err := os.ReadFile(file)
			if old == "" {
				require.ErrorIs(t, err, os.ErrNotExist, "nothing is written yet")
			}
			assert.Equal(t, old, string(now))
			require.NoError(t, a.Write())
			now, err = os.ReadFile(file)
			require.NoError(t, err)
			assert.Equal(t, old, string(now[:len(old)]))
			c, err := config.Load(config.Sources{User: file, Getenv: func(string) string { return "" }})
			require.NoError(t, err)
			got := c.Agents["theirs"]
			assert.Equal(t, theirs.Command, got.Command)
			assert.Equal(t, theirs.Title, got.Title)
			assert.Equal(t, theirs.Env, got.Env)
			if runtime.GOOS != "windows" {
				info, err := os.Stat(file)
				require.NoError(t, err)
				assert.Equal(t, os.FileMode(0o600), info.Mode())
			}
			_, err = add(theirs)
			require.ErrorContains(t, err, "has [agents.theirs] already")
		})
	}
}

func TestAddRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		old   string
		agent config.NewAgent
		err   string
	}{
		"a bad name":                  {"", config.NewAgent{Name: "a]\n[b", Command: []string{"x"}}, "no name of an agent"},
		"the demo agent":              {"", config.NewAgent{Name: "demo", Command: []string{"x"}}, "built-in demonstration"},
		"a file with a mistake":       {"hub = 7\n", theirs, "a mistake, which is to be corrected first"},
		"a file that is no TOML":      {"[agents\n", theirs, "a mistake, which is to be corrected first"},
		"agents that are closed":      {"agents = { mine = { command = [\"x\"] } }\n", theirs, "cannot be appended"},
		"an agent with another quote": {"[agents.\"theirs\"]\ncommand = [\"x\"]\n", theirs, "already"},
	} {
		t.Run(name, func(t *testing.T) {
			_, add := addable(t, c.old)
			_, err := add(c.agent)
			require.ErrorContains(t, err, c.err)
		})
	}
}

func TestAddLeavesAFileThatWasChangedMeanwhile(t *testing.T) {
	file, add := addable(t, "# mine\n")
	a, err := add(theirs)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(file, []byte("# changed\n"), 0o600))
	require.ErrorContains(t, a.Write(), "at the same time: try again")
	require.NoError(t, os.Remove(file))
	require.ErrorContains(t, a.Write(), "at the same time: try again")
}

func TestAddFollowsALink(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("links need rights there")
	}
	file, add := addable(t, "# mine\n")
	target := filepath.Join(filepath.Dir(file), "dotfile.toml")
	require.NoError(t, os.Rename(file, target))
	require.NoError(t, os.Symlink(target, file))
	a, err := add(config.NewAgent{Name: "a.b", Command: []string{"x"}})
	require.NoError(t, err)
	require.NoError(t, a.Write())
	info, err := os.Lstat(file)
	require.NoError(t, err)
	assert.Equal(t, os.ModeSymlink, info.Mode().Type())
	text, err := os.ReadFile(target)
	require.NoError(t, err)
	assert.Contains(t, string(text), "# mine\n")
	assert.Contains(t, string(text), `[agents."a.b"]`)
}
