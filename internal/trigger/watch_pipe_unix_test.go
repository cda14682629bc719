//go:build unix

package trigger

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A repository may replace its .gitignore with a pipe between two reads. The watcher must not block
// on it.
func TestAListThatBecomesAPipeHoldsNothingUp(t *testing.T) {
	dir := t.TempDir()
	path, pipe, file := filepath.Join(dir, ".gitignore"), filepath.Join(dir, "pipe"), filepath.Join(dir, "file")
	stop, swapped, read := make(chan struct{}), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(swapped)
		for {
			select {
			case <-stop:
				return
			default:
				_ = os.WriteFile(file, []byte("build\n"), 0o600)
				_ = os.Rename(file, path)
				_ = syscall.Mkfifo(pipe, 0o600)
				_ = os.Rename(pipe, path)
			}
		}
	}()
	go func() {
		defer close(read)
		for range 20_000 {
			readList(path)
		}
	}()
	select {
	case <-read:
	case <-time.After(time.Minute):
		f, err := os.OpenFile(path, os.O_RDWR, 0) // unblocks a blocked reader
		if err == nil {
			defer f.Close()
		}
		require.Fail(t, "it waits for the other end of a pipe")
	}
	close(stop)
	<-swapped
}
