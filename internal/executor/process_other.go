//go:build !unix

package executor

import (
	"fmt"
	"os"
	"syscall"
)

var terminateSignal = os.Kill

// signal can only kill here: there are no process groups.
func (p *process) signal(s os.Signal) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.reaped && s == os.Kill {
		p.cmd.Process.Kill()
	}
}

func (p *process) kill() { p.signal(os.Kill) }

func (p *process) reapGroup() {
	p.cmd.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.reaped = true
}

func sweep(string) {}

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
