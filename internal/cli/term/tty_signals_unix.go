//go:build unix

package term

import (
	"os"
	"os/signal"
	"syscall"
)

// Continued tells when this process goes on after it was stopped (C-z, then
// fg). stop gives the signal back.
func Continued() (again <-chan os.Signal, stop func()) { return receive(syscall.SIGCONT) }

// Resized tells when the terminal has another size. stop gives the signal back.
func Resized() (changes <-chan os.Signal, stop func()) { return receive(syscall.SIGWINCH) }

func receive(sig os.Signal) (<-chan os.Signal, func()) {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, sig)
	return signals, func() { signal.Stop(signals) }
}
