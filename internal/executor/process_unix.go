//go:build unix

package executor

import (
	"fmt"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

var terminateSignal os.Signal = syscall.SIGTERM

// signal signals the process group, if it is still there.
func (p *process) signal(s os.Signal) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.reaped {
		syscall.Kill(-p.pid, s.(syscall.Signal))
	}
}

func (p *process) kill() { p.signal(syscall.SIGKILL) }

func killGroup(p *process) { syscall.Kill(-p.pid, syscall.SIGKILL) }

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
