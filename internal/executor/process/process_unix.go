//go:build unix

package process

import (
	"fmt"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

var terminateSignal os.Signal = syscall.SIGTERM

// signal signals the process group, if it is still there.
func (p *Process) signal(s os.Signal) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.reaped {
		syscall.Kill(-p.PID, s.(syscall.Signal))
	}
}

// HangUp tells the process group that its terminal has gone.
func (p *Process) HangUp() { p.signal(syscall.SIGHUP) }

func killGroup(p *Process) { syscall.Kill(-p.PID, syscall.SIGKILL) }

// exitStatus is a process's exit status, and the name of the signal that
// ended it, if one did.
func exitStatus(state *os.ProcessState) (code int, signal string) {
	if state == nil {
		return -1, ""
	}
	if status, ok := state.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return 128 + int(status.Signal()), unix.SignalName(status.Signal())
	}
	return state.ExitCode(), ""
}

func describeExit(state *os.ProcessState) string {
	code, signal := exitStatus(state)
	if signal != "" {
		return "ended by " + signal
	}
	return fmt.Sprintf("exited with status %d", code)
}
