//go:build unix

package hubprocess

import (
	"os"
	"os/exec"
	"strconv"
	"syscall"
)

// ownSession are the attributes of a process that gets no signal of this terminal, and asks nothing on it.
func ownSession() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }

// endWithChildren makes the end of the command's context end its children, too.
func endWithChildren(cmd *exec.Cmd) {
	cmd.SysProcAttr = ownSession()
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
}

// detach lets a process outlive this one and its terminal. The process inherits no files except
// the first three: a shell's lock or pipe end would otherwise stay open as long as the process
// lives.
func detach(cmd *exec.Cmd) {
	cmd.SysProcAttr = ownSession()
	open, _ := os.ReadDir("/dev/fd") // without /dev/fd they stay open
	for _, file := range open {
		if fd, err := strconv.Atoi(file.Name()); err == nil && fd > 2 {
			syscall.CloseOnExec(fd)
		}
	}
}
