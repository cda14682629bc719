package git_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/duet-rpc/duet-rpc/internal/git"
	"github.com/duet-rpc/duet-rpc/internal/testkit"
)

// Objects that Sync cannot list are not said to be on the disk.
func TestSyncOfADirectoryThatCannotBeListed(t *testing.T) {
	testkit.NeedTool(t, "git")
	dir, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	for _, args := range [][]string{{"init", "-q"}, {"-c", "user.name=A", "-c", "user.email=a@localhost", "commit", "-q", "--allow-empty", "-m", "x"}} {
		out, err := exec.Command("git", append([]string{"-C", dir}, args...)...).CombinedOutput()
		require.NoError(t, err, "%s", out)
	}
	repo, found := git.Find(dir)
	require.True(t, found)
	require.NoError(t, repo.Sync())

	file, err := os.Open(dir)
	require.NoError(t, err)
	next := file.Fd()
	require.NoError(t, file.Close())
	var limit unix.Rlimit
	require.NoError(t, unix.Getrlimit(unix.RLIMIT_NOFILE, &limit))
	one := limit
	one.Cur = uint64(next) + 1 // one more file can be open: a directory, and not what lists it
	require.NoError(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &one))
	err = repo.Sync()
	require.NoError(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &limit))
	require.ErrorIs(t, err, unix.EMFILE)
}
