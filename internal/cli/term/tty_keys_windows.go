package term

import (
	"os"

	"golang.org/x/sys/windows"
)

// EachKey is not supported on Windows: answers are lines.
func EachKey(*os.File) (restore func()) { return nil }

// HideKeys is not supported on Windows.
func HideKeys(*os.File) (restore func()) { return nil }

// HideInput turns off a console's echo. restore undoes that; it is never nil.
func HideInput(terminal *os.File) (restore func()) {
	console := windows.Handle(terminal.Fd())
	var mode uint32
	if err := windows.GetConsoleMode(console, &mode); err != nil {
		return func() {}
	}
	if err := windows.SetConsoleMode(console, mode&^windows.ENABLE_ECHO_INPUT); err != nil {
		return func() {}
	}
	return func() { _ = windows.SetConsoleMode(console, mode) }
}
