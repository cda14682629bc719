package process

import (
	"os"
	"syscall"
)

var terminateSignal = os.Kill

// signal always kills: this system has no process groups.
func (p *Process) signal(s os.Signal) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.reaped && s == os.Kill {
		p.cmd.Process.Kill()
	}
}

// HangUp kills the process: this system has no terminals.
func (p *Process) HangUp() { p.signal(os.Kill) }

// killGroup does nothing: the group is the process itself.
func killGroup(*Process) {}

func groupAttr() *syscall.SysProcAttr { return nil }

func exitOf(status syscall.WaitStatus) exit { return exit{code: status.ExitStatus()} }
