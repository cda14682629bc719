//go:build unix

package project

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
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

func writePID(path string) error {
	return os.WriteFile(path, []byte(strconv.Itoa(os.Getpid())+"\n"), 0o600)
}

// hasProcess reports whether a process with an id, which may be 0, exists.
func hasProcess(pid int) bool {
	return pid > 0 && !errors.Is(syscall.Kill(pid, 0), syscall.ESRCH)
}

// ofSystem reports, by its name, whether a directory belongs to the system.
func ofSystem(dir string) bool {
	dir = strings.TrimPrefix(dir, "/private") // some of them are there on macOS
	switch dir {
	case "/root", "/home", "/Users", "/opt", "/srv", "/mnt", "/media", "/Volumes", "/run", "/run/user", "/run/media", "/nix", "/snap",
		"/usr", "/usr/local", "/usr/src", "/usr/local/src", "/usr/home", "/dev/shm",
		"/var", "/var/tmp", "/var/lib", "/var/cache", "/var/log", "/var/spool", "/var/run", "/var/mail", "/tmp", "":
		return true
	}
	if slices.ContainsFunc([]string{
		"/usr/src/", "/usr/local/src/", "/usr/home/", "/dev/shm/",
	}, func(prefix string) bool { return strings.HasPrefix(dir, prefix) }) {
		return false // people work there
	}
	first, _, _ := strings.Cut(strings.TrimPrefix(path.Clean(dir), "/"), "/")
	switch first {
	case "bin", "sbin", "lib", "lib32", "lib64", "libx32", "boot", "dev", "etc", "proc", "sys", "usr", "System", "Library", "Applications":
		return true
	}
	return false
}
