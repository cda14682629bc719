//go:build unix

package hubprocess

import (
	"os"
	"os/exec"
	"strconv"
	"syscall"
)

// detach lets a process outlive this one and its terminal. It gets none of the files
// that this one was started with beside the first three: what a shell holds, such as a
// lock or the end of a pipe, would be held as long as the process lives.
func detach(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	open, _ := os.ReadDir("/dev/fd") // where there is none they stay
	for _, file := range open {
		if fd, err := strconv.Atoi(file.Name()); err == nil && fd > 2 {
			syscall.CloseOnExec(fd)
		}
	}
}
