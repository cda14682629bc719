//go:build unix

package host

import (
	"os/exec"
	"syscall"
)

// detach lets a process outlive this one and its terminal.
func detach(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} }
