//go:build unix

package main

import (
	"os"
	"os/signal"
	"syscall"
)

// continued tells when this process goes on after it was stopped (C-z, then
// fg). stop gives the signal back.
func continued() (again <-chan os.Signal, stop func()) {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGCONT)
	return signals, func() { signal.Stop(signals) }
}
