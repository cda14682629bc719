//go:build unix

package cli

import (
	"errors"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// waitReadable waits until a file has data or has ended, and reports whether that happened in time.
func waitReadable(f *os.File, within time.Duration) bool {
	deadline := time.Now().Add(within)
	for {
		left := max(0, time.Until(deadline))
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(f.Fd()), Events: unix.POLLIN}}, int((left+time.Millisecond-1)/time.Millisecond))
		switch {
		case err == nil:
			return n > 0
		case !errors.Is(err, unix.EINTR):
			return true // reading returns the error
		}
	}
}
