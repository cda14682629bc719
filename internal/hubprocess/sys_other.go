//go:build !unix

package hubprocess

import "os/exec"

func detach(*exec.Cmd) {}
