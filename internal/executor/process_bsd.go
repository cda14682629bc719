//go:build unix && !linux

package executor

import "syscall"

func groupAttr() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

func ptyAttr() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true, Setctty: true} }

// reapGroup waits for the end of the process and kills what is left of its
// group.
func (p *process) reapGroup() {
	p.cmd.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.reaped = true
	killGroup(p)
}

func sweep(string) {}
