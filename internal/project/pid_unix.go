//go:build unix

package project

import (
	"errors"
	"os"
	"strconv"
	"syscall"
)

func writePID(path string) error {
	return os.WriteFile(path, []byte(strconv.Itoa(os.Getpid())+"\n"), 0o600)
}

// hasProcess reports whether a process with an id, which may be 0, exists.
func hasProcess(pid int) bool {
	return pid > 0 && !errors.Is(syscall.Kill(pid, 0), syscall.ESRCH)
}
