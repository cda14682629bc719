//go:build unix

package config_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/config"
	"github.com/duet-rpc/duet-rpc/internal/project"
)

// Another user's file is ignored, mistakes included, unless the user's own file allows it.
func TestAProjectsFileOfSomebodyElse(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can give files away")
	}
	for name, give := range map[string]func(w *world) string{
		"the file":      func(w *world) string { return w.project },
		"its directory": func(w *world) string { return filepath.Dir(w.project) },
		"the link": func(w *world) string {
			require.NoError(w.t, os.Rename(w.project, w.project+"x"))
			require.NoError(w.t, os.Symlink(w.project+"x", w.project))
			return w.project
		},
		"what a link leads to": func(w *world) string {
			require.NoError(w.t, os.Rename(w.project, w.project+"x"))
			require.NoError(w.t, os.Symlink(w.project+"x", w.project))
			return w.project + "x"
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.write(w.project, "[limits]\nmax_turns = 1\nwrong = 1\n")
			_, err := config.Load(w.sources())
			require.Error(t, err)
			require.NoError(t, os.Lchown(give(w), 12345, 12345))
			c := w.load()
			assert.Equal(t, 3, c.Limits.MaxTurns)
			require.Len(t, c.Notes, 1)
			assert.Contains(t, c.Notes[0], "belongs to user 12345 and is not used")
			_, err = config.Inspect(w.project, w.getenv)
			var foreign *project.ForeignError
			require.ErrorAs(t, err, &foreign)
			assert.Equal(t, 12345, foreign.UID)

			root := filepath.Dir(w.project)
			for _, text := range []string{"['" + root + "']", "['*']", "['" + filepath.Dir(root) + "/*']"} {
				w.write(w.user, "safe_directories = "+text)
				_, err = config.Load(w.sources())
				require.ErrorContains(t, err, "unknown key", text)
			}
			w.write(w.user, "safe_directories = ['/somewhere']")
			assert.Len(t, w.load().Notes, 1)
			w.env["DUET_SAFE_DIRECTORIES"] = "/else:" + root
			_, err = config.Load(w.sources())
			require.ErrorContains(t, err, "unknown key")
		})
	}
}

func TestSafeDirectoriesAreTheUsersToSay(t *testing.T) {
	w := newWorld(t)
	w.write(w.project, "safe_directories = ['*']")
	_, err := config.Load(w.sources())
	require.ErrorContains(t, err, ".duet.toml:1:1: safe_directories decides which users' files Duet accepts, so it belongs only in your own configuration")
	w.write(w.project, "[mcp]\neditor = true")
	_, err = config.Load(w.sources())
	require.ErrorContains(t, err, ".duet.toml:1:2: [mcp] decides which servers agents get and whether these are tried, so it belongs only in your own configuration")
	w.write(w.project, "")
	for text, problem := range map[string]string{"[mcp]\nprobe = 1": "expected true or false", "mcp = 1": "expected a table, [mcp]", "[mcp]\nprobes = true": "unknown key"} {
		w.write(w.user, text)
		_, err = config.Load(w.sources())
		require.ErrorContains(t, err, problem)
	}
	w.write(w.user, "safe_directories = ['relative']")
	_, err = config.Load(w.sources())
	require.ErrorContains(t, err, `:1:21: value 1 of safe_directories: expected the path of a directory`)
}

// All settings of the user's file apply, so no other user may write it.
func TestTheUsersFileIsTheUsersAlone(t *testing.T) {
	w := newWorld(t)
	w.write(w.user, "default_agent = 'codex'")
	for mode, good := range map[os.FileMode]bool{0o600: true, 0o644: true, 0o664: true, 0o646: false, 0o666: false} {
		require.NoError(t, os.Chmod(w.user, mode))
		if info, err := os.Stat(w.user); mode == 0o664 && (err != nil || project.WritableByOthers(info)) {
			good = false // the group has many members
		}
		_, err := config.Load(w.sources())
		if good {
			assert.NoError(t, err, "%o", mode)
		} else {
			assert.ErrorContains(t, err, "other users can write it: chmod go-w", "%o", mode)
		}
	}
	require.NoError(t, os.Chmod(w.user, 0o600))
	if os.Geteuid() == 0 {
		require.NoError(t, os.Chown(w.user, 12345, 0))
		_, err := config.Load(w.sources())
		assert.ErrorContains(t, err, "belongs to user 12345 and is not used")
	}
}
