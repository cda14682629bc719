package term

import "golang.org/x/sys/unix"

// ioctl requests that get and set the modes of a terminal.
const (
	getModes = unix.TIOCGETA
	setModes = unix.TIOCSETA
)
