package project

import "golang.org/x/sys/unix"

// networkFileSystem returns the name of the network file system that a directory is on, or "".
func networkFileSystem(dir string) string {
	var stat unix.Statfs_t
	if unix.Statfs(dir, &stat) != nil || stat.Flags&unix.MNT_LOCAL != 0 {
		return ""
	}
	return unix.ByteSliceToString(stat.Fstypename[:])
}
