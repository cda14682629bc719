package origin

import (
	"io/fs"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// identify asks for the moment at which a file was made, which stat(2) does not
// tell.
func identify(path string, info fs.FileInfo) (fileID, error) {
	var x unix.Statx_t
	err := unix.Statx(unix.AT_FDCWD, path, unix.AT_SYMLINK_NOFOLLOW, unix.STATX_INO|unix.STATX_BTIME, &x)
	if err == nil && x.Mask&unix.STATX_INO != 0 {
		id := fileID{Inode: x.Ino}
		if x.Mask&unix.STATX_BTIME != 0 {
			id.Born = time.Unix(x.Btime.Sec, int64(x.Btime.Nsec)).UnixNano()
		}
		return id, nil
	}
	stat, ok := info.Sys().(*syscall.Stat_t) // an old system, or one that forbids statx(2)
	if !ok {
		return fileID{}, err
	}
	return fileID{Inode: stat.Ino}, nil
}
