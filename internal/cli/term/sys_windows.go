package term

import (
	"os"
	"time"

	"golang.org/x/sys/windows"
)

// Modes are the modes that a console had before this process changed them.
type Modes struct{ were uint32 }

// ReadModes returns the modes of a console; nil if they are unknown.
func ReadModes(terminal *os.File) *Modes {
	var m Modes
	if err := windows.GetConsoleMode(windows.Handle(terminal.Fd()), &m.were); err != nil {
		return nil
	}
	return &m
}

// EachKey is not supported on Windows: answers are lines.
func (*Modes) EachKey(*os.File) bool { return false }

// HideKeys is not supported on Windows.
func (*Modes) HideKeys(*os.File) bool { return false }

// HideLine turns off a console's echo. It returns false if that failed.
func (m *Modes) HideLine(terminal *os.File) bool {
	return windows.SetConsoleMode(windows.Handle(terminal.Fd()), m.were&^windows.ENABLE_ECHO_INPUT) == nil
}

// Restore gives a console its modes back.
func (m *Modes) Restore(terminal *os.File) {
	_ = windows.SetConsoleMode(windows.Handle(terminal.Fd()), m.were)
}

// InForeground returns true: shells do not stop jobs here.
func InForeground(*os.File) bool { return true }

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

// stopWithin is zero, because nothing ends a read from a console. What it reads is the next input.
const stopWithin = 0

type waker struct{}

func newWaker() (waker, error) { return waker{}, nil }

func (waker) wake() {}

func (waker) close() {}

func (waker) read(terminal *os.File, into []byte) (n int, ok bool, err error) {
	n, err = terminal.Read(into)
	return n, true, err
}

func typedAlready(*os.File) []byte { return nil }
