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
