//go:build unix

package project

import (
	"io/fs"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// noFollow is the flag for opening a file that must not be a symbolic link.
const noFollow = unix.O_NOFOLLOW

func foreign(info fs.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return !ok || int(stat.Uid) != os.Geteuid()
}

// links is how many names a file has.
func links(info fs.FileInfo) uint64 {
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		return uint64(stat.Nlink) // its type differs between systems
	}
	return 1
}

func sharedWrite(info fs.FileInfo) bool { return info.Mode().Perm()&0o022 != 0 }

func writable(dir string) bool { return unix.Access(dir, unix.W_OK|unix.X_OK) == nil }
