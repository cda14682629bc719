package testkit

import (
	"errors"
	"testing"

	"golang.org/x/sys/unix"
)

// AwaitExit waits until a process has ended, whosever child it is.
func AwaitExit(t testing.TB, pid int) {
	t.Helper()
	fd, err := unix.PidfdOpen(pid, 0)
	if errors.Is(err, unix.ESRCH) {
		return
	}
	if err != nil {
		t.Fatalf("process %d: %v", pid, err)
	}
	defer unix.Close(fd)
	for {
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, int(patience.Milliseconds()))
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil:
			t.Fatalf("process %d: %v", pid, err)
		case n == 0:
			t.Fatalf("process %d still runs", pid)
		default:
			return
		}
	}
}
