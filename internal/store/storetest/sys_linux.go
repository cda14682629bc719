package storetest

import (
	"os"
	"syscall"
)

// leastMemory is how many bytes the file system in memory must have free.
const leastMemory = 512 << 20

// InMemory moves the temporary directories of a test process to memory, so that databases
// do not wait for a disk. It does nothing if TMPDIR is set, as .ci/run does, or if the
// system has no file system in memory with room that may hold programs. TestMain calls it.
func InMemory() {
	const (
		dir    = "/dev/shm"
		noExec = 8 // ST_NOEXEC of statfs(2)
	)
	var s syscall.Statfs_t
	if os.Getenv("TMPDIR") != "" || syscall.Statfs(dir, &s) != nil || uint64(s.Bsize)*s.Bavail < leastMemory || s.Flags&noExec != 0 {
		return
	}
	f, err := os.CreateTemp(dir, "duet")
	if err != nil {
		return
	}
	f.Close()
	os.Remove(f.Name())
	os.Setenv("TMPDIR", dir)
}
