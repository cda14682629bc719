//go:build unix && !linux

package process

import "syscall"

func groupAttr() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// TerminalAttr makes a child the leader of a session whose terminal is its
// standard input.
func TerminalAttr() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true, Setctty: true} }

// reapGroup waits for the end of the process and kills the rest of its group.
func (p *Process) reapGroup() {
	p.cmd.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.reaped = true
	killGroup(p)
}

func killMarked(string) {}
