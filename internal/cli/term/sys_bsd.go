//go:build darwin || dragonfly || freebsd || netbsd || openbsd

package term

import (
	"os"

	"golang.org/x/sys/unix"
)

// ioctl requests that get and set the modes of a terminal.
const (
	getModes = unix.TIOCGETA
	setModes = unix.TIOCSETA
)

// DiscardTyped discards unread input of a terminal, because it cannot answer a question that
// was not asked yet.
func DiscardTyped(terminal *os.File) {
	const read = 1 // FREAD of fcntl.h
	_ = unix.IoctlSetPointerInt(int(terminal.Fd()), unix.TIOCFLUSH, read)
}
