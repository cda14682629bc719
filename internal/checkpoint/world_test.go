//go:build unix

package checkpoint_test

import (
	"context"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/checkpoint"
	"github.com/duet-rpc/duet-rpc/internal/testkit"
)

// A world is a project with a store.
type world struct {
	testing.TB
	home, dir, state string // state is the default of opts.State
	opts             checkpoint.Options
	*checkpoint.Store
}

// newWorld makes a directory without git. HOME is empty, see TestMain.
func newWorld(t testing.TB) *world {
	testkit.NeedTool(t, "git")
	home := t.TempDir()
	w := &world{TB: t, home: home, dir: filepath.Join(home, "project"), state: filepath.Join(home, "state")}
	require.NoError(t, os.Mkdir(w.dir, 0o755))
	w.opts = checkpoint.Options{Dir: w.dir, State: w.state}
	return w
}

// newRepository makes a world whose project is a repository with one commit of the files.
func newRepository(t testing.TB, files map[string]string) *world {
	w := newWorld(t)
	w.git("init", "-q", "-b", "main")
	w.commit(files)
	return w
}

func (w *world) commit(files map[string]string) {
	w.write(files)
	w.git("add", "-A")
	w.git("commit", "-q", "-m", "x")
}

func (w *world) open() *world {
	w.Helper()
	store, err := checkpoint.Open(w.Context(), w.opts)
	require.NoError(w, err)
	w.Store = store
	return w
}

func (w *world) take() checkpoint.Checkpoint {
	w.Helper()
	if w.Store == nil {
		w.open()
	}
	c, err := w.Take(w.Context(), "message")
	require.NoError(w, err)
	return c
}

// git runs git as the user does, and returns its output.
func (w *world) git(args ...string) string {
	w.Helper()
	return gitIn(w, w.dir, args...)
}

func gitIn(t testing.TB, dir string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(context.Background(), "git", append([]string{
		"-c", "user.name=u", "-c", "user.email=u@localhost", "-c", "protocol.file.allow=always", "-c", "gc.auto=0",
	}, args...)...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "git %q: %s", args, out)
	return string(out)
}

// write writes files of the project, as testkit.WriteFiles does.
func (w *world) write(files map[string]string) {
	w.Helper()
	testkit.WriteFiles(w, w.dir, files)
}

// recorded returns the files of a checkpoint, as testkit.ReadFiles does.
func (w *world) recorded(c checkpoint.Checkpoint) map[string]string {
	w.Helper()
	found := make(map[string]string)
	changes, err := w.Changes(w.Context(), w.empty().ID, c.ID)
	require.NoError(w, err)
	for _, change := range changes {
		require.Equal(w, checkpoint.Added, change.Kind)
		text, err := w.Read(w.Context(), change.NewBlob)
		require.NoError(w, err)
		require.Len(w, text, int(change.NewSize))
		switch change.NewMode {
		case 0o120000:
			found[change.Path] = "-> " + string(text)
		case 0o100755:
			found[change.Path] = "x " + string(text)
		default:
			found[change.Path] = string(text)
		}
	}
	return found
}

// empty returns a checkpoint without files, which it makes with git's own commands.
func (w *world) empty() checkpoint.Checkpoint {
	w.Helper()
	list, err := w.List(w.Context())
	require.NoError(w, err)
	for _, c := range list {
		if c.Message == "empty" {
			return c
		}
	}
	dirs, err := os.ReadDir(w.opts.State)
	require.NoError(w, err)
	made := 0
	for _, entry := range dirs {
		dir := filepath.Join(w.opts.State, entry.Name())
		id, err := os.ReadFile(filepath.Join(dir, "id"))
		if err != nil {
			continue
		}
		made++
		env := []string{"--git-dir=" + dir}
		if strings.Contains(dir, "shared-") {
			env = []string{"-C", w.dir}
		}
		tree := strings.TrimSpace(gitIn(w, w.dir, append(env, "hash-object", "-t", "tree", "-w", os.DevNull)...))
		file := filepath.Join(w.TempDir(), "tag")
		text := "object " + tree + "\ntype tree\ntag duet-0\ntagger duet <duet@localhost> 1 +0000\n\nempty\n\nSkipped:\n"
		require.NoError(w, os.WriteFile(file, []byte(text), 0o600))
		tag := strings.TrimSpace(gitIn(w, w.dir, append(env, "hash-object", "-t", "tag", "-w", file)...))
		gitIn(w, w.dir, append(env, "-c", "core.logAllRefUpdates=false", "update-ref", "refs/duet/"+string(id)+"/0", tag)...)
	}
	require.NotZero(w, made)
	return w.empty()
}

// only returns the entries of a map with the keys.
func only(all map[string]string, keys ...string) map[string]string {
	found := maps.Clone(all)
	maps.DeleteFunc(found, func(key, _ string) bool { return !slices.Contains(keys, key) })
	return found
}
