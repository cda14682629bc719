package filewatch

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"golang.org/x/sys/unix"
)

// followed watches files for a test. Events are in the descriptor's queue as soon as a change
// returns.
func followed(t *testing.T, paths ...string) *files {
	t.Helper()
	f, err := newFiles(paths)
	require.NoError(t, err)
	t.Cleanup(func() { f.file.Close() })
	return f
}

// tells reads all pending events, and watches the current paths.
func (f *files) tells(t *testing.T) (concerned bool) {
	t.Helper()
	conn, err := f.file.SyscallConn()
	require.NoError(t, err)
	events := make([]byte, 4096)
	for {
		var n int
		require.NoError(t, conn.Control(func(fd uintptr) { n, err = unix.Read(int(fd), events) }))
		if errors.Is(err, unix.EAGAIN) {
			return concerned
		}
		require.NoError(t, err)
		if f.relevant(events[:n]) {
			concerned = true
			require.NoError(t, f.renew())
		}
	}
}

// write makes a file and its directories.
func write(t *testing.T, path, text string) {
	t.Helper()
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
}

// swap replaces a file by another one, as editors do.
func swap(t *testing.T, path, text string) {
	t.Helper()
	write(t, path+".new", text)
	require.NoError(t, os.Rename(path+".new", path))
}

// root returns a directory whose name is free of links.
func root(t *testing.T) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	return dir
}

// Every way to replace a file is reported, and nothing is reported twice.
func TestFilesAreFollowed(t *testing.T) {
	for name, play := range map[string]struct {
		before func(t *testing.T, dir, path string)
		steps  []func(t *testing.T, dir, path string)
	}{
		"it is written again": {
			before: func(t *testing.T, _, path string) { write(t, path, "0") },
			steps: []func(*testing.T, string, string){
				func(t *testing.T, _, path string) { write(t, path, "1") },
				func(t *testing.T, _, path string) { write(t, path, "2") },
			},
		},
		"it is replaced": {
			before: func(t *testing.T, _, path string) { write(t, path, "0") },
			steps: []func(*testing.T, string, string){
				func(t *testing.T, _, path string) { swap(t, path, "1") },
				func(t *testing.T, _, path string) { swap(t, path, "2") },
				func(t *testing.T, _, path string) { write(t, path, "3") },
				func(t *testing.T, _, path string) { require.NoError(t, os.Remove(path)) },
				func(t *testing.T, _, path string) { write(t, path, "4") },
			},
		},
		"the directories appear": {
			before: func(*testing.T, string, string) {},
			steps: []func(*testing.T, string, string){
				func(t *testing.T, _, path string) { write(t, path, "1") },
				func(t *testing.T, dir, _ string) { require.NoError(t, os.RemoveAll(filepath.Join(dir, "a"))) },
				func(t *testing.T, _, path string) { write(t, path, "2") },
			},
		},
		"a directory is moved": {
			before: func(t *testing.T, _, path string) { write(t, path, "0") },
			steps: []func(*testing.T, string, string){
				func(t *testing.T, dir, _ string) {
					require.NoError(t, os.Rename(filepath.Join(dir, "a"), filepath.Join(dir, "moved")))
				},
				func(t *testing.T, dir, _ string) {
					write(t, filepath.Join(dir, "moved", "b", "file"), "1") // has no effect on the watched file
					require.NoError(t, os.Rename(filepath.Join(dir, "moved"), filepath.Join(dir, "a")))
				},
				func(t *testing.T, _, path string) { write(t, path, "2") },
			},
		},
		"it is a link": {
			before: func(t *testing.T, dir, path string) {
				write(t, filepath.Join(dir, "dotfiles", "file"), "0")
				require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
				require.NoError(t, os.Symlink("../../dotfiles/file", path))
			},
			steps: []func(*testing.T, string, string){
				func(t *testing.T, dir, _ string) { swap(t, filepath.Join(dir, "dotfiles", "file"), "1") },
				func(t *testing.T, dir, path string) {
					write(t, filepath.Join(dir, "other"), "2")
					require.NoError(t, os.Symlink(filepath.Join(dir, "other"), path+".new"))
					require.NoError(t, os.Rename(path+".new", path))
				},
				func(t *testing.T, dir, _ string) { write(t, filepath.Join(dir, "other"), "3") },
			},
		},
		"a directory is a link": {
			before: func(t *testing.T, dir, _ string) {
				write(t, filepath.Join(dir, "one", "b", "file"), "0")
				write(t, filepath.Join(dir, "two", "b", "file"), "1")
				require.NoError(t, os.Symlink("one", filepath.Join(dir, "a")))
			},
			steps: []func(*testing.T, string, string){
				func(t *testing.T, dir, _ string) {
					require.NoError(t, os.Symlink("two", filepath.Join(dir, "new")))
					require.NoError(t, os.Rename(filepath.Join(dir, "new"), filepath.Join(dir, "a")))
				},
				func(t *testing.T, dir, _ string) { swap(t, filepath.Join(dir, "two", "b", "file"), "2") },
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := root(t)
			path := filepath.Join(dir, "a", "b", "file")
			play.before(t, dir, path)
			f := followed(t, filepath.Join(dir, "elsewhere"), path)
			for i, step := range play.steps {
				step(t, dir, path)
				require.True(t, f.tells(t), "step %d", i)
				require.False(t, f.tells(t), "step %d", i)
			}
		})
	}
}

// A file that appears may not be complete yet.
func TestAFileIsToldOfWhenItIsWhole(t *testing.T) {
	path := filepath.Join(root(t), "file")
	f := followed(t, path)
	file, err := os.Create(path)
	require.NoError(t, err)
	require.True(t, f.tells(t), "it is there")
	_, err = file.WriteString("text")
	require.NoError(t, err)
	require.False(t, f.tells(t), "it is being written")
	require.NoError(t, file.Close())
	require.True(t, f.tells(t), "it is whole")
	require.NoError(t, os.Chmod(path, 0o640))
	require.True(t, f.tells(t), "others may read it")
}

// Changes of other files send no notification.
func TestOtherFilesAreNotTold(t *testing.T) {
	dir := root(t)
	path := filepath.Join(dir, "file")
	write(t, path, "text")
	f := followed(t, path)
	write(t, filepath.Join(dir, "beside"), "text")
	swap(t, filepath.Join(dir, "beside"), "more")
	require.NoError(t, os.Chmod(dir, 0o755))
	_, err := os.ReadFile(path)
	require.NoError(t, err)
	assert.False(t, f.tells(t))
}

func TestLinksInACircleAreNoFile(t *testing.T) {
	dir := root(t)
	path := filepath.Join(dir, "a")
	require.NoError(t, os.Symlink("b", path))
	require.NoError(t, os.Symlink("a", filepath.Join(dir, "b")))
	f := followed(t, path)
	swap(t, filepath.Join(dir, "b"), "text")
	assert.True(t, f.tells(t))
}

func TestFilesAreToldOfUntilTheWatchIsClosed(t *testing.T) {
	path := filepath.Join(root(t), "new", "file")
	w, err := Files(path)
	require.NoError(t, err)
	write(t, path, "text")
	require.True(t, notified(w))
	require.NoError(t, w.Close())
}
