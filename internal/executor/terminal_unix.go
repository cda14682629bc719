//go:build unix

package executor

import (
	"os"
	"syscall"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"
)

// start starts the program in a new pseudo terminal.
func (t *terminal) start(cols, rows int) error {
	size := &pty.Winsize{Cols: uint16(cols), Rows: uint16(rows)}
	return t.x.launch(t.proc, func() error {
		f, err := pty.StartWithAttrs(t.proc.cmd, size, ptyAttr())
		if err != nil {
			return err
		}
		// Package pty leaves the file in blocking mode, in which Close does not
		// end a Read.
		defer f.Close()
		fd, err := unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, 0)
		if err == nil {
			err = unix.SetNonblock(fd, true)
		}
		if err != nil {
			t.proc.cmd.Process.Kill()
			t.proc.cmd.Wait()
			return err
		}
		t.proc.stdout = os.NewFile(uintptr(fd), "pty")
		return nil
	})
}

// resize gives the terminal a size. If it has that already its program is told
// all the same: who attaches to it wants to see its screen, and a program draws
// that when its size changes.
func (t *terminal) resize(cols, rows int) error {
	raw, err := t.proc.stdout.SyscallConn()
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
			_ = unix.Kill(-group, unix.SIGWINCH) // it may have ended just now
		}
	})
	if err != nil {
		return err
	}
	return failed
}

// duplicate is the terminal's descriptor once more.
func (t *terminal) duplicate() (*os.File, error) {
	raw, err := t.proc.stdout.SyscallConn()
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

// unblock puts the terminal into the mode that reading it needs: who had its
// descriptor shares that mode, and may have changed it.
func (t *terminal) unblock() {
	if raw, err := t.proc.stdout.SyscallConn(); err == nil {
		_ = raw.Control(func(fd uintptr) { _ = unix.SetNonblock(int(fd), true) })
	}
}

func (t *terminal) hangUp() { t.proc.signal(syscall.SIGHUP) }
