package checkpoint

import (
	"errors"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// fileClock returns the earliest time that a file gets which is changed from now on. Linux counts it
// in ticks of a few milliseconds, which may be late. From 6.13 on, it gives a file whose time was
// read since its last change the exact time, which may be after the present tick.
func fileClock() time.Time {
	var now unix.Timespec
	if unix.ClockGettime(unix.CLOCK_REALTIME_COARSE, &now) != nil {
		return time.Now()
	}
	return time.Unix(now.Unix())
}

// birthTime returns when a file was created. Not every file system knows it.
func birthTime(path string) (time.Time, error) {
	var stat unix.Statx_t
	err := unix.Statx(unix.AT_FDCWD, path, unix.AT_SYMLINK_NOFOLLOW, unix.STATX_BTIME, &stat)
	if err == nil && stat.Mask&unix.STATX_BTIME == 0 {
		err = errors.ErrUnsupported
	}
	if err != nil {
		return time.Time{}, &os.PathError{Op: "statx", Path: path, Err: err}
	}
	return time.Unix(stat.Btime.Sec, int64(stat.Btime.Nsec)), nil
}
