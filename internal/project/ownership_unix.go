//go:build unix

package project

import (
	"io/fs"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// Flags for [os.OpenFile].
const (
	NoFollow    = unix.O_NOFOLLOW // fail on a symbolic link
	NonBlocking = unix.O_NONBLOCK // do not wait for the other end of a named pipe
)

// ownershipOwnerOf returns the user that a file belongs to; known is false if the system does
// not report it.
func ownershipOwnerOf(info fs.FileInfo) (uid int, known bool) {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, false
	}
	return int(stat.Uid), true
}

// IsForeign reports whether a file belongs to another user, or may.
func IsForeign(info fs.FileInfo) bool {
	uid, known := ownershipOwnerOf(info)
	return !known || uid != os.Geteuid()
}

// sharedWrite reports whether the file's mode lets its group, or all others, write
// to it.
func sharedWrite(info fs.FileInfo) bool { return info.Mode().Perm()&0o022 != 0 }

// WritableByOthers reports whether another user can write a file, except the members of a group
// that has its user's number. Such a group is that user's own, and systems with such groups
// often make new files writable by them.
func WritableByOthers(info fs.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	mode := info.Mode()
	if !ok || mode&fs.ModeSymlink != 0 || mode.Perm()&0o022 == 0 {
		return false // a link has no permissions of its own
	}
	return mode.Perm()&0o002 != 0 || stat.Gid != stat.Uid
}
