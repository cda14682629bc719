//go:build linux || darwin

package term

import (
	"os"

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
