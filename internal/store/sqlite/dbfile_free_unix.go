//go:build unix

package sqlite

import "golang.org/x/sys/unix"

// freeBytes is how much can still be written to the disk that dir is on, or a
// negative number if that is not known.
func freeBytes(dir string) int64 {
	var st unix.Statfs_t
	if unix.Statfs(dir, &st) != nil {
		return -1
	}
	return int64(st.Bavail) * int64(st.Bsize) //nolint:unconvert // the types differ between systems
}
