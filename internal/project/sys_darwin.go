package project

import (
	"fmt"
	"io/fs"
	"syscall"

	"golang.org/x/sys/unix"
)

func identify(path string, info fs.FileInfo) (Identity, error) {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return Identity{}, fmt.Errorf("the system does not say which directory %s is", path)
	}
	return Identity{Device: uint64(stat.Dev), Inode: stat.Ino, Born: stat.Birthtimespec.Nano()}, nil
}

// networkFileSystem returns the name of the network file system that a directory is on, or "".
func networkFileSystem(dir string) string {
	var stat unix.Statfs_t
	if unix.Statfs(dir, &stat) != nil || stat.Flags&unix.MNT_LOCAL != 0 {
		return ""
	}
	return unix.ByteSliceToString(stat.Fstypename[:])
}
