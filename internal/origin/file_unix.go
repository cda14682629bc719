//go:build unix

package origin

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// errNotDirectory says that a path leads through what is no directory.
const errNotDirectory = unix.ENOTDIR

// syncDir makes the names in a directory survive a power cut, where its file
// system can do that.
func syncDir(path string) error {
	dir, err := os.Open(path)
	if err != nil {
		return err
	}
	defer dir.Close()
	if err := dir.Sync(); err != nil && !errors.Is(err, unix.EINVAL) && !errors.Is(err, unix.ENOTSUP) {
		return err
	}
	return nil
}
