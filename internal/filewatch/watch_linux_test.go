package filewatch

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"golang.org/x/sys/unix"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// place makes above/project/.duet with a file, and watches it.
func place(t *testing.T) (above, dir string, w *Watch) {
	t.Helper()
	above, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	dir = filepath.Join(above, "project", ".duet")
	require.NoError(t, os.MkdirAll(dir, 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "lock"), nil, 0o600))
	w, err = Directory(dir, above)
	require.NoError(t, err)
	t.Cleanup(func() { w.Close() })
	return above, dir, w
}

func notified(w *Watch) bool {
	select {
	case <-w.C:
		return true
	case <-time.After(10 * time.Second):
		return false
	}
}

func TestRemovalIsTold(t *testing.T) {
	for name, change := range map[string]func(above, dir string) error{
		"an entry is removed": func(_, dir string) error { return os.Remove(filepath.Join(dir, "lock")) },
		"an entry is renamed": func(_, dir string) error { return os.Rename(filepath.Join(dir, "lock"), filepath.Join(dir, "old")) },
		"an entry is moved away": func(above, dir string) error {
			return os.Rename(filepath.Join(dir, "lock"), filepath.Join(above, "old"))
		},
		"an entry is replaced":          func(above, dir string) error { return replace(above, filepath.Join(dir, "lock")) },
		"the directory is removed":      func(_, dir string) error { return os.RemoveAll(dir) },
		"the directory is moved":        func(above, dir string) error { return os.Rename(dir, filepath.Join(above, "moved")) },
		"what is above it is moved":     func(above, _ string) error { return os.Rename(above, above+"-moved") },
		"what leads to it is moved":     func(above, dir string) error { return os.Rename(filepath.Dir(dir), filepath.Join(above, "moved")) },
		"all that was there is removed": func(above, _ string) error { return os.RemoveAll(above) },
	} {
		t.Run(name, func(t *testing.T) {
			above, dir, w := place(t)
			require.NoError(t, change(above, dir))
			t.Cleanup(func() { os.RemoveAll(above + "-moved") })
			assert.True(t, notified(w))
		})
	}
}

func TestRemovalOfAnEmptyDirectoryIsTold(t *testing.T) {
	_, dir, _ := place(t)
	empty := filepath.Join(dir, "empty")
	require.NoError(t, os.Mkdir(empty, 0o700))
	w, err := Directory(empty, empty)
	require.NoError(t, err)
	defer w.Close()
	require.NoError(t, os.Remove(empty))
	assert.True(t, notified(w))
}

// replace replaces a file by another one.
func replace(above, path string) error {
	other := filepath.Join(above, "other")
	if err := os.WriteFile(other, nil, 0o600); err != nil {
		return err
	}
	return os.Rename(other, path)
}

// Frequent writes send no notification.
func TestWritingIsNotTold(t *testing.T) {
	above, dir, _ := place(t)
	fd, err := listen(dir)
	require.NoError(t, err)
	defer unix.Close(fd)
	for _, path := range []string{filepath.Join(dir, "lock"), filepath.Join(dir, "new"), filepath.Join(above, "beside"), filepath.Join(above, "project", "beside")} {
		require.NoError(t, os.WriteFile(path, []byte("text"), 0o600))
		require.NoError(t, os.Chmod(path, 0o640))
	}
	require.NoError(t, os.Remove(filepath.Join(above, "beside")))
	require.Zero(t, pendingBytes(t, fd))
	require.NoError(t, os.Remove(filepath.Join(dir, "new")))
	require.NotZero(t, pendingBytes(t, fd))
}

// pendingBytes returns how many bytes of events are pending.
func pendingBytes(t *testing.T, fd int) int {
	t.Helper()
	n, err := unix.Read(fd, make([]byte, 4096))
	if errors.Is(err, unix.EAGAIN) {
		return 0
	}
	require.NoError(t, err)
	return n
}

// Many changes between two reads are one notification.
func TestManyChangesAreOne(t *testing.T) {
	_, dir, w := place(t)
	for range 100 {
		require.NoError(t, os.WriteFile(filepath.Join(dir, "file"), nil, 0o600))
		require.NoError(t, os.Remove(filepath.Join(dir, "file")))
	}
	assert.True(t, notified(w))
	require.NoError(t, w.Close())
	assert.LessOrEqual(t, len(w.C), 1)
}

func TestDirectoryThatCannotBeWatched(t *testing.T) {
	_, err := Directory(filepath.Join(t.TempDir(), "none"), "/")
	require.Error(t, err)
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	_, err = Directory(file, "/")
	assert.ErrorContains(t, err, "not a directory")
}

func TestWritingToAFileIsTold(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	file, err := os.Create(path)
	require.NoError(t, err)
	defer file.Close()
	w, err := Written(path)
	require.NoError(t, err)
	defer w.Close()
	assert.Empty(t, w.C)
	for range 3 {
		_, err = file.WriteString("line\n")
		require.NoError(t, err)
		assert.True(t, notified(w))
	}
	_, err = Written(filepath.Join(t.TempDir(), "none"))
	assert.Error(t, err)
}
