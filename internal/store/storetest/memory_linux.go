package storetest

import (
	"os"
	"syscall"
)

// leastMemory is how many bytes a file system in memory has to have free.
const leastMemory = 256 << 20

// InMemory has the tests of a process keep their temporary directories in memory, so that
// databases wait for no disk. It does nothing where the caller sets TMPDIR, or where the
// system has no such file system with room. TestMain calls it.
func InMemory() {
	const dir = "/dev/shm"
	var s syscall.Statfs_t
	if os.Getenv("TMPDIR") != "" || syscall.Statfs(dir, &s) != nil || uint64(s.Bsize)*s.Bavail < leastMemory {
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
