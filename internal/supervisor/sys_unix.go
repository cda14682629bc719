//go:build unix

package supervisor

import (
	"errors"
	"net"
	"os"
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"
)

// socketpair makes the link to an executor: the hub's end, and the one that it inherits.
func socketpair() (net.Conn, *os.File, error) {
	// ForkLock: a child that starts meanwhile must not inherit them.
	syscall.ForkLock.RLock()
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err == nil {
		unix.CloseOnExec(fds[0])
		unix.CloseOnExec(fds[1])
	}
	syscall.ForkLock.RUnlock()
	if err != nil {
		return nil, nil, os.NewSyscallError("socketpair", err)
	}
	near, far := os.NewFile(uintptr(fds[0]), "executor"), os.NewFile(uintptr(fds[1]), "executor")
	defer near.Close()
	conn, err := net.FileConn(near)
	if err != nil {
		far.Close()
		return nil, nil, err
	}
	return conn, far, nil
}

// inOwnGroup keeps signals of the terminal, such as C-c, from an executor: the hub decides when
// it ends.
func inOwnGroup(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

func killGroup(cmd *exec.Cmd) { _ = unix.Kill(-cmd.Process.Pid, unix.SIGKILL) }

// isGone reports whether a process is known and has ended.
func isGone(pid int) bool { return pid > 1 && errors.Is(unix.Kill(pid, 0), unix.ESRCH) }
