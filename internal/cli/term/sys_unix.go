//go:build unix

package term

import (
	"errors"
	"os"
	"os/signal"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// EachKey makes a terminal deliver each key at once and unchanged, without echo. C-c and C-z keep
// their meaning. restore undoes that; it is nil if nothing was changed.
func EachKey(terminal *os.File) (restore func()) {
	return change(terminal, func(modes *unix.Termios) {
		modes.Lflag &^= unix.ICANON | unix.ECHO | unix.IEXTEN
		modes.Iflag &^= unix.ICRNL | unix.IXON
		modes.Cc[unix.VMIN], modes.Cc[unix.VTIME] = 1, 0
	})
}

// HideKeys turns off a terminal's echo, unless this process is in the background, where a shell
// shows what the user types. restore undoes that; it is nil if nothing was changed.
func HideKeys(terminal *os.File) (restore func()) {
	if group, err := unix.IoctlGetInt(int(terminal.Fd()), unix.TIOCGPGRP); err != nil || group != unix.Getpgrp() {
		return nil
	}
	return change(terminal, func(modes *unix.Termios) { modes.Lflag &^= unix.ECHO })
}

// HideInput turns off a terminal's echo except for newlines. restore undoes that; it is never
// nil.
func HideInput(terminal *os.File) (restore func()) {
	restore = change(terminal, func(modes *unix.Termios) {
		modes.Lflag &^= unix.ECHO
		modes.Lflag |= unix.ICANON | unix.ECHONL
	})
	if restore == nil {
		return func() {}
	}
	return restore
}

// change changes the modes of a terminal. restore undoes that; it is nil if nothing was changed.
func change(terminal *os.File, do func(modes *unix.Termios)) (restore func()) {
	was, err := unix.IoctlGetTermios(int(terminal.Fd()), getModes)
	if err != nil {
		return nil
	}
	now := *was
	do(&now)
	if err := unix.IoctlSetTermios(int(terminal.Fd()), setModes, &now); err != nil {
		return nil
	}
	return func() { _ = unix.IoctlSetTermios(int(terminal.Fd()), setModes, was) }
}

// Continued reports when this process continues after it was stopped (C-z, then fg). stop ends
// that.
func Continued() (again <-chan os.Signal, stop func()) { return receive(syscall.SIGCONT) }

// Resized reports when the size of the terminal changes. stop ends that.
func Resized() (changes <-chan os.Signal, stop func()) { return receive(syscall.SIGWINCH) }

// Stopped reports C-z, which then does not stop this process: call [Stop] when the terminal is
// ready for that. stop ends that.
func Stopped() (stops <-chan os.Signal, stop func()) { return receive(syscall.SIGTSTP) }

// Stop stops this process until it is continued.
func Stop() { _ = syscall.Kill(syscall.Getpid(), syscall.SIGSTOP) }

func receive(sig os.Signal) (<-chan os.Signal, func()) {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, sig)
	return signals, func() { signal.Stop(signals) }
}

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

// WaitReadable waits until a file has data or has ended, and reports whether that happened in time.
func WaitReadable(f *os.File, within time.Duration) bool {
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
