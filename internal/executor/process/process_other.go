//go:build !unix

package process

import (
	"fmt"
	"os"
	"syscall"
)

var terminateSignal = os.Kill

// signal can only kill here: there are no process groups.
func (p *Process) signal(s os.Signal) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.reaped && s == os.Kill {
		p.cmd.Process.Kill()
	}
}

// HangUp kills the process: there are no terminals here.
func (p *Process) HangUp() { p.signal(os.Kill) }

func (p *Process) reapGroup() {
	p.cmd.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.reaped = true
}

func killMarked(string) {}

func groupAttr() *syscall.SysProcAttr { return nil }

func exitStatus(state *os.ProcessState) (code int, signal string) {
	if state == nil {
		return -1, ""
	}
	return state.ExitCode(), ""
}

func describeExit(state *os.ProcessState) string {
	code, _ := exitStatus(state)
	return fmt.Sprintf("exited with status %d", code)
}
