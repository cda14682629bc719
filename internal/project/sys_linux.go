package project

import (
	"fmt"
	"io/fs"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// identify gets the birth time from statx(2), because stat(2) does not have it.
func identify(path string, info fs.FileInfo) (Identity, error) {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return Identity{}, fmt.Errorf("the system does not say which directory %s is", path)
	}
	id := Identity{Device: stat.Dev, Inode: stat.Ino}
	var x unix.Statx_t
	err := unix.Statx(unix.AT_FDCWD, path, 0, unix.STATX_INO|unix.STATX_BTIME, &x)
	if err == nil && x.Ino == id.Inode && x.Mask&unix.STATX_BTIME != 0 { // else an old system, or one that forbids statx
		id.Born = time.Unix(x.Btime.Sec, int64(x.Btime.Nsec)).UnixNano()
	}
	return id, nil
}

// networkFileSystem returns the name of the network file system that a directory is on, or "".
// FUSE is not listed: most of its file systems are local.
func networkFileSystem(dir string) string {
	var stat unix.Statfs_t
	if unix.Statfs(dir, &stat) != nil {
		return ""
	}
	return networkName(uint32(stat.Type))
}

// networkName returns the name of a network file system by its number in statfs(2), or "".
func networkName(number uint32) string {
	switch number {
	case unix.NFS_SUPER_MAGIC:
		return "NFS"
	case unix.SMB_SUPER_MAGIC, unix.CIFS_SUPER_MAGIC, unix.SMB2_SUPER_MAGIC:
		return "SMB"
	case unix.AFS_SUPER_MAGIC, unix.AFS_FS_MAGIC:
		return "AFS"
	case unix.CODA_SUPER_MAGIC:
		return "Coda"
	case unix.CEPH_SUPER_MAGIC:
		return "Ceph"
	case unix.V9FS_MAGIC:
		return "9P"
	}
	return ""
}
