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
	uid, ok := owner(info)
	return !ok || uid != os.Geteuid()
}

func owner(info fs.FileInfo) (uid int, known bool) {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, false
	}
	return int(stat.Uid), true
}

// links is how many names a file has.
func links(info fs.FileInfo) uint64 {
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		return uint64(stat.Nlink) // its type differs between systems
	}
	return 1
}

func sharedWrite(info fs.FileInfo) bool { return info.Mode().Perm()&0o022 != 0 }

// WritableByOthers reports whether somebody else can write a file, but for the
// members of a group that has its user's number: such a group is that user's
// own, and where there are such groups new files are often writable by them.
func WritableByOthers(info fs.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	mode := info.Mode()
	if !ok || mode&fs.ModeSymlink != 0 || mode.Perm()&0o022 == 0 {
		return false // a link has no permissions of its own
	}
	return mode.Perm()&0o002 != 0 || stat.Gid != stat.Uid
}

func writable(dir string) bool { return unix.Access(dir, unix.W_OK|unix.X_OK) == nil }
