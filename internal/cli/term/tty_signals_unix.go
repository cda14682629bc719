//go:build unix

package term

import (
	"os"
	"os/signal"
	"syscall"
)

// Continued reports when this process continues after it was stopped (C-z, then fg). stop ends
// that.
func Continued() (again <-chan os.Signal, stop func()) { return receive(syscall.SIGCONT) }

// Resized reports when the size of the terminal changes. stop ends that.
func Resized() (changes <-chan os.Signal, stop func()) { return receive(syscall.SIGWINCH) }

// Stopped reports C-z, which then does not stop this process: call [Stop] when the terminal is
// ready for that. stop ends that.
func Stopped() (stops <-chan os.Signal, stop func()) { return receive(syscall.SIGTSTP) }

// Stop stops this process until it is continued.
func Stop() { _ = syscall.Kill(syscall.Getpid(), syscall.SIGSTOP) }

func receive(sig os.Signal) (<-chan os.Signal, func()) {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, sig)
	return signals, func() { signal.Stop(signals) }
}
