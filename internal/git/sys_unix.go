//go:build unix

package git

import (
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"
)

// inOwnGroup makes the end of the command's context kill the command and its children.
func inOwnGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
}

func writable(path string) bool { return unix.Access(path, unix.W_OK) == nil }
