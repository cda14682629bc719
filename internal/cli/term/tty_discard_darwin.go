package term

import (
	"os"

	"golang.org/x/sys/unix"
)

// DiscardTyped throws away what was typed on a terminal and not read: it was no
// answer to a question that is only asked now.
func DiscardTyped(terminal *os.File) {
	const read = 1 // FREAD of fcntl.h
	_ = unix.IoctlSetPointerInt(int(terminal.Fd()), unix.TIOCFLUSH, read)
}
