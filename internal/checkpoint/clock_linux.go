package checkpoint

import (
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
