//go:build unix

package executor

import (
	"os"
	"os/exec"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"

	"github.com/duet-rpc/duet-rpc/internal/executor/process"
)

// start starts the program in a new pseudo terminal.
func (t *terminal) start(cmd *exec.Cmd, cols, rows int) (err error) {
	size := &pty.Winsize{Cols: uint16(cols), Rows: uint16(rows)}
	t.proc, err = t.set.processes.StartWith(cmd, func() (*os.File, error) {
		f, err := pty.StartWithAttrs(cmd, size, process.TerminalAttr())
		if err != nil {
			return nil, err
		}
		// Package pty leaves the file in blocking mode, in which Close does not end a Read.
		defer f.Close()
		fd, err := unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, 0)
		if err == nil {
			err = unix.SetNonblock(fd, true)
		}
		if err != nil {
			cmd.Process.Kill()
			cmd.Wait()
			return nil, err
		}
		t.tty = os.NewFile(uintptr(fd), "pty")
		return t.tty, nil
	})
	return err
}

// resize sets the size of the terminal. It signals the program even if the size stays the same,
// because a program redraws its screen then, and a newly attached client needs that.
func (t *terminal) resize(cols, rows int) error {
	raw, err := t.tty.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	err = raw.Control(func(fd uintptr) {
		was, _ := unix.IoctlGetWinsize(int(fd), unix.TIOCGWINSZ)
		failed = unix.IoctlSetWinsize(int(fd), unix.TIOCSWINSZ, &unix.Winsize{Col: uint16(cols), Row: uint16(rows)})
		if failed != nil || was == nil || int(was.Col) != cols || int(was.Row) != rows {
			return
		}
		if group, err := unix.IoctlGetInt(int(fd), unix.TIOCGPGRP); err == nil && group > 1 {
			_ = unix.Kill(-group, unix.SIGWINCH) // the program may have just ended
		}
	})
	if err != nil {
		return err
	}
	return failed
}

// duplicate returns a copy of the terminal's descriptor.
func (t *terminal) duplicate() (*os.File, error) {
	raw, err := t.tty.SyscallConn()
	if err != nil {
		return nil, err
	}
	fd := -1
	var failed error
	if err := raw.Control(func(own uintptr) { fd, failed = unix.FcntlInt(own, unix.F_DUPFD_CLOEXEC, 0) }); err != nil {
		return nil, err
	}
	if failed != nil {
		return nil, failed
	}
	return os.NewFile(uintptr(fd), "pty"), nil
}

// unblock sets the non-blocking mode that reading needs. A borrower of the descriptor shares that
// mode, and may have changed it.
func (t *terminal) unblock() {
	if raw, err := t.tty.SyscallConn(); err == nil {
		_ = raw.Control(func(fd uintptr) { _ = unix.SetNonblock(int(fd), true) })
	}
}
