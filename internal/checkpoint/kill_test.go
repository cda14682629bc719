//go:build unix

package checkpoint_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/checkpoint"
	"github.com/duet-rpc/duet-rpc/internal/store/storetest"
	"github.com/duet-rpc/duet-rpc/internal/testkit"
)

// helperVariable makes the test binary open a store and take a checkpoint, or restore one.
const helperVariable = "CHECKPOINT_TEST_HELPER"

type helperTask struct {
	Options  checkpoint.Options
	From, To checkpoint.ID // to restore
}

func TestMain(m *testing.M) {
	text, isHelper := os.LookupEnv(helperVariable)
	if !isHelper {
		storetest.InMemory()
		home, err := os.MkdirTemp("", "")
		if err == nil {
			err = errors.Join(os.Setenv("HOME", home), os.Unsetenv("XDG_CONFIG_HOME"))
		}
		if err != nil {
			panic(err)
		}
		code := m.Run()
		os.RemoveAll(home)
		os.Exit(code)
	}
	var task helperTask
	err := json.Unmarshal([]byte(text), &task)
	store, err2 := checkpoint.Open(context.Background(), task.Options)
	if err != nil || err2 != nil {
		fmt.Println(err, err2)
		os.Exit(1)
	}
	var result any
	if task.To == "" {
		result, err = store.Take(context.Background(), "helper")
	} else {
		result, err = store.Restore(context.Background(), task.From, task.To, checkpoint.RestoreOptions{})
	}
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	_ = json.NewEncoder(os.Stdout).Encode(result)
}

// helper returns a process that performs the task.
func (w *world) helper(task helperTask) *exec.Cmd {
	task.Options = w.opts
	text, err := json.Marshal(task)
	require.NoError(w, err)
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), helperVariable+"="+string(text))
	return cmd
}

// The test kills each git process of Take, before and after its work. The remains harm neither the
// user nor the next Take.
func TestGitIsKilled(t *testing.T) {
	t.Parallel()
	git := testkit.NeedTool(t, "git")
	for _, name := range []string{"for-each-ref", "cat-file", "status", "ls-files", "update-index", "write-tree", "mktag", "update-ref"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newRepository(t, map[string]string{"a": "1", ".gitignore": "i\n", "i": "i"})
			w.take()
			w.write(map[string]string{"a": "2", "b": "3"})
			w.git("add", "-f", "i")
			for i, script := range []string{
				"kill -9 $$",
				"touch \"$GIT_INDEX_FILE.lock\" 2>/dev/null; kill -9 $$",
				git + " \"$@\" >/dev/null; kill -9 $$",
			} {
				w.opts.Git = testkit.Program(t, filepath.Join(w.home, fmt.Sprint("git", i)), "#!/bin/sh\nif [ \"$1\" = "+name+" ]; then "+script+"; fi\nexec "+git+" \"$@\"\n")
				_, err := w.open().Take(t.Context(), "")
				if name == "update-ref" && i == 2 {
					require.NoError(t, err, "the next attempt finds the checkpoint")
				} else {
					require.ErrorContains(t, err, "git "+name+": signal: killed")
				}
				w.git("fsck", "--strict")
			}
			w.opts.Git = ""
			w.open()
			assert.Equal(t, testkit.ReadFiles(t, w.dir), w.recorded(w.take()))
			w.git("fsck", "--strict")
			left, err := os.ReadDir(filepath.Join(w.state))
			require.NoError(t, err)
			for _, dir := range left {
				works, _ := filepath.Glob(filepath.Join(w.state, dir.Name(), "work-*"))
				assert.Empty(t, works)
			}
		})
	}
}

// A killed Restore leaves a temporary file and its name. The next Restore removes it.
func TestRestoreAfterAKill(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.write(map[string]string{"d1/f": "1", "d2/f2": "kept"})
	first := w.take()
	w.write(map[string]string{"d1/f": "2"})
	second := w.take()
	dirs, err := filepath.Glob(filepath.Join(w.state, "own-*"))
	require.NoError(t, err)
	w.write(map[string]string{"d1/.duet-restore-x": "half"})
	require.NoError(t, os.WriteFile(filepath.Join(dirs[0], "temporaries"), []byte("d1/.duet-restore-x\x00d2/f2\x00../state/lock\x00"), 0o600))
	_, err = w.Restore(t.Context(), second.ID, first.ID, checkpoint.RestoreOptions{})
	require.NoError(t, err)
	assert.Equal(t, map[string]string{"d1/f": "1", "d2/f2": "kept"}, testkit.ReadFiles(t, w.dir))
	assert.FileExists(t, filepath.Join(w.state, "lock"))
}

// Take skips files and directories that the process may not read.
func TestUnreadableFiles(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		testkit.SkipMissing(t, "only root can start a process of another user")
	}
	w := newWorld(t)
	home, err := os.MkdirTemp("", "")
	require.NoError(t, err)
	t.Cleanup(func() { os.RemoveAll(home) })
	w.dir, w.state = filepath.Join(home, "project"), filepath.Join(home, "state")
	w.opts = checkpoint.Options{Dir: w.dir, State: w.state}
	w.write(map[string]string{"a": "1", "secret": "s", "closed/b": "b", "later": "1"})
	const other = 12345
	own := func() {
		t.Helper()
		require.NoError(t, filepath.Walk(home, func(name string, _ os.FileInfo, err error) error { return os.Lchown(name, other, other) }))
		require.NoError(t, os.Chmod(filepath.Join(w.dir, "secret"), 0))
	}
	own()
	require.NoError(t, os.Chmod(filepath.Join(w.dir, "closed"), 0))
	binary := filepath.Join(home, "test")
	text, err := os.ReadFile(os.Args[0])
	require.NoError(t, err)
	testkit.Program(t, binary, text)
	require.NoError(t, os.Chmod(binary, 0o755))
	take := func() (c checkpoint.Checkpoint) {
		t.Helper()
		cmd := w.helper(helperTask{})
		cmd.Path, cmd.Dir = binary, home
		cmd.Env = append(cmd.Env, "HOME="+home)
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: other, Gid: other}}
		out, err := cmd.Output()
		require.NoError(t, err, string(out))
		require.NoError(t, json.Unmarshal(out, &c))
		return c
	}
	c := take()
	skipped := []checkpoint.Skipped{{Path: "secret", Reason: checkpoint.Unreadable}, {Path: "closed", Reason: checkpoint.Unreadable}}
	assert.ElementsMatch(t, skipped, c.Skipped)
	assert.Equal(t, map[string]string{"a": "1", "later": "1"}, w.open().recorded(c))

	w.write(map[string]string{"later": "changed"})
	own()
	require.NoError(t, os.Chmod(filepath.Join(w.dir, "later"), 0))
	c = take()
	assert.ElementsMatch(t, append(skipped, checkpoint.Skipped{Path: "later", Reason: checkpoint.Unreadable}), c.Skipped)

	// The process may not write into the repository's objects.
	require.NoError(t, os.Chmod(filepath.Join(w.dir, "closed"), 0o700))
	gitIn(t, w.dir, "init", "-q")
	own()
	require.NoError(t, os.Chmod(filepath.Join(w.dir, ".git", "objects"), 0o500))
	take()
	shared, err := filepath.Glob(filepath.Join(w.state, "shared-*"))
	require.NoError(t, err)
	assert.Empty(t, shared)
	require.NoError(t, os.Chmod(filepath.Join(w.dir, ".git", "objects"), 0o700))
	take()
	shared, err = filepath.Glob(filepath.Join(w.state, "shared-*"))
	require.NoError(t, err)
	assert.Len(t, shared, 1)
}

// The lock of a killed git stops no checkpoint. Take removes an old lock.
func TestLockOfARef(t *testing.T) {
	for name, refs := range map[string]string{"git": "project/.git", "no git": "state/own-*"} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			if name == "git" {
				w = newRepository(t, map[string]string{"a": "1"})
			}
			w.write(map[string]string{"a": "2"})
			first := w.take()
			stores, err := filepath.Glob(filepath.Join(w.home, refs, "refs/duet/*"))
			require.NoError(t, err)
			require.Len(t, stores, 1)
			lock := filepath.Join(stores[0], fmt.Sprint(first.Number+1)+".lock")
			require.NoError(t, os.WriteFile(lock, nil, 0o600))
			w.write(map[string]string{"a": "3"})
			assert.Equal(t, first.Number+2, w.take().Number)
			assert.FileExists(t, lock, "another git may hold it")
			require.NoError(t, os.Chtimes(lock, time.Time{}, time.Now().Add(-time.Hour)))
			w.write(map[string]string{"a": "4"})
			assert.Equal(t, first.Number+3, w.take().Number)
			assert.NoFileExists(t, lock)
		})
	}
}
