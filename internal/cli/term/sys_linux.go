package term

import (
	"os"

	"golang.org/x/sys/unix"
)

// ioctl requests that get and set the modes of a terminal.
const (
	getModes = unix.TCGETS
	setModes = unix.TCSETS
)

// DiscardTyped discards unread input of a terminal, because it cannot answer a question that
// was not asked yet.
func DiscardTyped(terminal *os.File) {
	_ = unix.IoctlSetInt(int(terminal.Fd()), unix.TCFLSH, unix.TCIFLUSH)
}
