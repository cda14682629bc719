//go:build unix

package origin

import (
	"errors"
	"io/fs"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

const (
	noFollow    = unix.O_NOFOLLOW
	nonBlocking = unix.O_NONBLOCK
)

// errNotDirectory says that a path leads through what is no directory.
const errNotDirectory = unix.ENOTDIR

func foreign(info fs.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return !ok || int(stat.Uid) != os.Geteuid()
}

func links(info fs.FileInfo) uint64 {
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		return uint64(stat.Nlink) // its type differs between systems
	}
	return 1
}

func readableByOthers(info fs.FileInfo) bool { return info.Mode().Perm()&0o077 != 0 }

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
