//go:build unix

package process

import (
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

var terminateSignal os.Signal = syscall.SIGTERM

// signal sends a signal to the process group, unless it has ended. A program in a sandbox has a group
// of its own, which bwrap is not in: bwrap would end of the signal before the program could.
func (p *Process) signal(s os.Signal) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.reaped {
		return
	}
	if p.group > 0 && s != os.Kill && syscall.Kill(-p.group, s.(syscall.Signal)) == nil {
		return
	}
	syscall.Kill(-p.PID, s.(syscall.Signal))
}

// HangUp sends SIGHUP to the process group.
func (p *Process) HangUp() { p.signal(syscall.SIGHUP) }

// groupAttr makes a child the leader of a group.
func groupAttr() *syscall.SysProcAttr {
	return endWithParent(&syscall.SysProcAttr{Setpgid: true})
}

// TerminalAttr makes a child the leader of a session whose terminal is its
// standard input.
func TerminalAttr() *syscall.SysProcAttr {
	return endWithParent(&syscall.SysProcAttr{Setsid: true, Setctty: true})
}

func killGroup(p *Process) { syscall.Kill(-p.PID, syscall.SIGKILL) }

// exitOf converts a wait status.
func exitOf(status syscall.WaitStatus) exit {
	if status.Signaled() {
		return exit{128 + int(status.Signal()), unix.SignalName(status.Signal())}
	}
	return exit{code: status.ExitStatus()}
}
