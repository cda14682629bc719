//go:build unix

package term

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// watchReader calls gone when the reader of a pipe or socket is gone. stop ends that and waits
// until the watcher has ended.
func watchReader(file *os.File, gone func()) (stop func()) {
	ended, end, err := os.Pipe()
	if err != nil { // the next write returns the error
		return func() {}
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			fds := []unix.PollFd{{Fd: int32(file.Fd())}, {Fd: int32(ended.Fd()), Events: unix.POLLIN}}
			_, err := unix.Poll(fds, -1)
			switch {
			case errors.Is(err, unix.EINTR):
				continue
			case err == nil && fds[1].Revents == 0 && fds[0].Revents&(unix.POLLERR|unix.POLLHUP) != 0:
				gone()
			}
			return
		}
	}()
	return func() {
		end.Close()
		<-done
		ended.Close()
	}
}
