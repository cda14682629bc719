package term

import "golang.org/x/sys/unix"

// Requests of ioctl that read and set the modes of a terminal.
const (
	getModes = unix.TIOCGETA
	setModes = unix.TIOCSETA
)
