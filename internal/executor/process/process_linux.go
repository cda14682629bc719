package process

import (
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/procenv"
)

// groupAttr makes a child the leader of a group, and lets it die with the thread that started it,
// which lives as long as the Runner.
func groupAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// TerminalAttr makes a child the leader of a session whose terminal is its
// standard input.
func TerminalAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setsid: true, Setctty: true, Pdeathsig: syscall.SIGKILL}
}

// reapGroup waits for the end of the process without reaping it, so that its id and its group's
// id stay in use while the group is killed.
func (p *Process) reapGroup() {
	for unix.Waitid(unix.P_PID, p.PID, nil, unix.WEXITED|unix.WNOWAIT, nil) == unix.EINTR {
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	killGroup(p)
	p.cmd.Wait()
	p.reaped = true
}

// killMarked kills the processes that carry the mark, also those that left the process group.
func killMarked(mark string) {
	want := catalog.MarkVariable + "=" + mark
	procenv.Kill(func(variable string) bool { return variable == want })
}
