//go:build !unix

package hubprocess

import (
	"os/exec"
	"syscall"
)

func ownSession() *syscall.SysProcAttr { return nil }

func detach(*exec.Cmd) {}
