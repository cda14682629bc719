package term

import "golang.org/x/sys/unix"

// ioctl requests that get and set the modes of a terminal.
const (
	getModes = unix.TCGETS
	setModes = unix.TCSETS
)
