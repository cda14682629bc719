//go:build unix

package durable

import (
	"errors"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

const nonBlocking = unix.O_NONBLOCK // do not wait for the other end of a named pipe

// SyncDirectory writes the names in a directory to the disk, not the files.
func SyncDirectory(path string) error {
	f, err := os.Open(filepath.Clean(path))
	if err != nil {
		return err
	}
	defer f.Close()
	return syncFile(f)
}

// syncFile succeeds on file systems that cannot write a directory to the disk.
func syncFile(f *os.File) error {
	err := f.Sync()
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOTSUP) {
		return nil
	}
	return err
}

func isNoDirectory(err error) bool { return errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.ELOOP) }
