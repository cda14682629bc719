package term

import (
	"os"
	"time"

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

// DiscardTyped discards unread input of a terminal, because it cannot answer a question that
// was not asked yet.
func DiscardTyped(terminal *os.File) {
	_ = windows.FlushConsoleInputBuffer(windows.Handle(terminal.Fd()))
}

// Continued is not supported here, because shells do not stop jobs. The channel is nil.
func Continued() (again <-chan os.Signal, stop func()) { return nil, func() {} }

// Resized is not supported here, because there is no such signal. The channel is nil.
func Resized() (changes <-chan os.Signal, stop func()) { return nil, func() {} }

// Stopped is not supported here, because shells do not stop jobs. The channel is nil.
func Stopped() (stops <-chan os.Signal, stop func()) { return nil, func() {} }

// Stop does nothing here.
func Stop() {}

// watchReader is not supported here and does nothing.
func watchReader(*os.File, func()) (stop func()) { return func() {} }

// WaitReadable cannot wait on Windows and returns true, so that the caller reads the file.
func WaitReadable(*os.File, time.Duration) bool { return true }
