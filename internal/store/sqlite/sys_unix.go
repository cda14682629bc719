//go:build unix

package sqlite

import (
	"os"

	"golang.org/x/sys/unix"
)

// blocker returns the process that holds a write lock on a database, 0 if that is unknown. This
// process must not have the database open: closing a file releases all of the process's locks on
// it
// (https://sqlite.org/howtocorrupt.html#_posix_advisory_locks_canceled_by_a_separate_thread_doing_close_).
func blocker(path string) int {
	for _, lock := range []struct {
		file        string
		start, size int64
	}{
		{path + "-shm", 120, 8}, // https://sqlite.org/walformat.html#wal_index_locking_matrix
		{path, 1 << 30, 512},    // PENDING, RESERVED and SHARED, in os.h
	} {
		if pid := lockedBy(lock.file, lock.start, lock.size); pid > 0 {
			return pid
		}
	}
	return 0
}

func lockedBy(path string, start, size int64) int {
	f, err := os.Open(path)
	if err != nil {
		return 0
	}
	defer f.Close()
	lock := unix.Flock_t{Type: unix.F_WRLCK, Start: start, Len: size}
	if unix.FcntlFlock(f.Fd(), unix.F_GETLK, &lock) != nil || lock.Type == unix.F_UNLCK {
		return 0
	}
	return int(lock.Pid)
}

// freeBytes returns the free space of the disk with dir in bytes, or a negative number if that is
// unknown.
func freeBytes(dir string) int64 {
	var st unix.Statfs_t
	if unix.Statfs(dir, &st) != nil {
		return -1
	}
	return int64(st.Bavail) * int64(st.Bsize) //nolint:unconvert // the types differ between systems
}
