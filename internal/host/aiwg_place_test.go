package host_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/host"
)

// place makes a project with a directory of AIWG, and its state directory.
func place(t *testing.T) (root, state, pidFile string) {
	t.Helper()
	root, state = t.TempDir(), t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(root, ".aiwg", "daemon"), 0o755))
	return root, state, filepath.Join(root, ".aiwg", "daemon.pid")
}

func write(t *testing.T, path, text string) {
	t.Helper()
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
}

// dead returns the id of a process that has ended.
func dead(t *testing.T) string {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^$")
	require.NoError(t, cmd.Run())
	return strconv.Itoa(cmd.Process.Pid)
}

func TestIsUsed(t *testing.T) {
	t.Parallel()
	dir := func(t *testing.T, path string) { require.NoError(t, os.MkdirAll(path, 0o755)) }
	for name, c := range map[string]struct {
		make func(t *testing.T, dot string)
		used bool
		why  string
	}{
		"there is nothing":        {make: func(*testing.T, string) {}},
		"a directory":             {make: dir, used: true},
		"with one for the daemon": {make: func(t *testing.T, dot string) { dir(t, filepath.Join(dot, "daemon")) }, used: true},
		"a file":                  {make: func(t *testing.T, dot string) { write(t, dot, "") }, why: "is no directory"},
		"a link":                  {make: func(t *testing.T, dot string) { require.NoError(t, os.Symlink(t.TempDir(), dot)) }, why: "is no directory"},
		"a link for the daemon": {make: func(t *testing.T, dot string) {
			dir(t, dot)
			require.NoError(t, os.Symlink(t.TempDir(), filepath.Join(dot, "daemon")))
		}, why: "daemon is no directory"},
		"others may write into it": {make: func(t *testing.T, dot string) {
			dir(t, dot)
			require.NoError(t, os.Chmod(dot, 0o777))
		}, why: "chmod go-w"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			root := t.TempDir()
			c.make(t, filepath.Join(root, ".aiwg"))
			used, err := host.UsesAIWG(root)
			assert.Equal(t, c.used, used)
			if c.why == "" {
				require.NoError(t, err)
			} else {
				require.ErrorContains(t, err, c.why)
			}
		})
	}
}

func TestWhoListensIsNoted(t *testing.T) {
	t.Parallel()
	root, state, file := place(t)
	require.NoError(t, host.CheckAIWGFree(root, state))
	own, err := host.WriteAIWGPID(root, state)
	require.NoError(t, err)
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	assert.Equal(t, strconv.Itoa(os.Getpid()), string(text), "as AIWG's daemon writes it")
	info, err := os.Stat(file)
	require.NoError(t, err)
	assert.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	entries, err := os.ReadDir(filepath.Dir(file))
	require.NoError(t, err)
	assert.Len(t, entries, 2, "nothing else is left there")

	require.NoError(t, own.Remove())
	assert.NoFileExists(t, file)
	require.NoError(t, own.Remove(), "a second time nothing is to be done")
}

func TestTheFileOfAnotherProcessStays(t *testing.T) {
	t.Parallel()
	root, state, file := place(t)
	own, err := host.WriteAIWGPID(root, state)
	require.NoError(t, err)
	write(t, file, strconv.Itoa(os.Getppid()))
	require.NoError(t, own.Remove())
	assert.FileExists(t, file)
}

func TestADaemonThatRunsIsLeftAlone(t *testing.T) {
	t.Parallel()
	root, state, file := place(t)
	write(t, file, strconv.Itoa(os.Getppid())+"\n")
	var running *host.RunningError
	require.ErrorAs(t, host.CheckAIWGFree(root, state), &running)
	assert.Equal(t, os.Getppid(), running.PID)
	assert.ErrorContains(t, running, "remove the file")
}

func TestWhatIsStaleIsTakenOver(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{"of one that has ended": dead(t), "nothing": "", "no number": "daemon", "no process": "-1", "long": string(make([]byte, 1000))} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			root, state, file := place(t)
			write(t, file, text)
			require.NoError(t, host.CheckAIWGFree(root, state))
			_, err := host.WriteAIWGPID(root, state)
			require.NoError(t, err)
			now, err := os.ReadFile(file)
			require.NoError(t, err)
			assert.Equal(t, strconv.Itoa(os.Getpid()), string(now))
		})
	}
}

// Another process may by now have the id of a hub that was killed.
func TestTheFileOfAKilledHubIsKnownAgain(t *testing.T) {
	t.Parallel()
	root, state, file := place(t)
	_, err := host.WriteAIWGPID(root, state)
	require.NoError(t, err)
	another := strconv.Itoa(os.Getppid())
	write(t, file, another)
	write(t, filepath.Join(state, "aiwg.pid"), another)
	require.NoError(t, host.CheckAIWGFree(root, state))
}

// A link that came with a repository is not followed.
func TestNoLinkIsFollowed(t *testing.T) {
	t.Parallel()
	root, state, file := place(t)
	precious := filepath.Join(t.TempDir(), "precious")
	write(t, precious, "mine")
	require.NoError(t, os.Symlink(precious, file))
	require.NoError(t, os.Symlink(precious, file+".duet~"))
	_, err := host.WriteAIWGPID(root, state)
	require.ErrorContains(t, err, "is no regular file")
	require.NoError(t, os.Remove(file))
	_, err = host.WriteAIWGPID(root, state)
	require.NoError(t, err)
	text, err := os.ReadFile(precious)
	require.NoError(t, err)
	assert.Equal(t, "mine", string(text))
}
