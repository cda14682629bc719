//go:build unix

package config

import (
	"io/fs"
	"os/exec"
	"syscall"
)

// ownGroup makes the end of the command also end its children.
func ownGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
}

func readByOthers(info fs.FileInfo) bool { return info.Mode().Perm()&0o077 != 0 }

const nonBlocking = syscall.O_NONBLOCK | syscall.O_NOCTTY
