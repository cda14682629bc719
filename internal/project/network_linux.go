package project

import "golang.org/x/sys/unix"

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
