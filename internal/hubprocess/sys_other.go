//go:build !unix

package hubprocess

import (
	"os/exec"
	"syscall"
)

func ownSession() *syscall.SysProcAttr { return nil }

func endWithChildren(*exec.Cmd) {}

func detach(*exec.Cmd) {}
