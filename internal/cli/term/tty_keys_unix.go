//go:build linux || darwin

package term

import (
	"os"

	"golang.org/x/sys/unix"
)

// EachKey makes a terminal deliver each key at once and unchanged, without echo. C-c and C-z keep
// their meaning. restore undoes that; it is nil if nothing was changed.
func EachKey(terminal *os.File) (restore func()) {
	was, err := unix.IoctlGetTermios(int(terminal.Fd()), getModes)
	if err != nil {
		return nil
	}
	now := *was
	now.Lflag &^= unix.ICANON | unix.ECHO | unix.IEXTEN
	now.Iflag &^= unix.ICRNL | unix.IXON
	now.Cc[unix.VMIN], now.Cc[unix.VTIME] = 1, 0
	if err := unix.IoctlSetTermios(int(terminal.Fd()), setModes, &now); err != nil {
		return nil
	}
	return func() { _ = unix.IoctlSetTermios(int(terminal.Fd()), setModes, was) }
}

// HideInput turns off a terminal's echo except for newlines. restore undoes that; it is never
// nil.
func HideInput(terminal *os.File) (restore func()) {
	was, err := unix.IoctlGetTermios(int(terminal.Fd()), getModes)
	if err != nil {
		return func() {}
	}
	now := *was
	now.Lflag &^= unix.ECHO
	now.Lflag |= unix.ICANON | unix.ECHONL
	if err := unix.IoctlSetTermios(int(terminal.Fd()), setModes, &now); err != nil {
		return func() {}
	}
	return func() { _ = unix.IoctlSetTermios(int(terminal.Fd()), setModes, was) }
}
