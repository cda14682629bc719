//go:build unix

package sqlite

import "golang.org/x/sys/unix"

// freeBytes returns the free space of the disk with dir in bytes, or a negative number if that is
// unknown.
func freeBytes(dir string) int64 {
	var st unix.Statfs_t
	if unix.Statfs(dir, &st) != nil {
		return -1
	}
	return int64(st.Bavail) * int64(st.Bsize) //nolint:unconvert // the types differ between systems
}
