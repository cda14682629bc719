package term

import (
	"os"

	"golang.org/x/sys/windows"
)

// DiscardTyped discards unread input of a terminal, because it cannot answer a question that
// was not asked yet.
func DiscardTyped(terminal *os.File) {
	_ = windows.FlushConsoleInputBuffer(windows.Handle(terminal.Fd()))
}
