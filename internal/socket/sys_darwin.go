package socket

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"
)

const (
	// longestPath is the limit of sun_path without its terminating zero, in bytes.
	longestPath = 103
	// The system reduces backlog to kern.ipc.somaxconn.
	backlog = 4096
	// refusalsBeforeStale is more than one because a listener with a full queue refuses here.
	refusalsBeforeStale = 5
)

// address returns the path of a file in the directory, for a socket address.
func (d *directory) address(name string) (string, error) {
	path := d.join(name)
	if err := checkLength(path); err != nil {
		return "", err
	}
	return path, nil
}

func checkLength(path string) error {
	if len(path) > longestPath {
		return fmt.Errorf("a socket's path can have at most %d bytes here, and %s has %d: choose a shorter one",
			longestPath, path, len(path))
	}
	return nil
}

func openEntry(dirfd int, dir, name string) (*entry, error) {
	e := &entry{address: filepath.Join(dir, name), close: func() {}}
	if err := unix.Fstatat(dirfd, name, &e.stat, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return nil, &os.PathError{Op: "stat", Path: e.address, Err: err}
	}
	if err := checkLength(e.address); err != nil {
		return nil, err
	}
	e.id = idOf(e.stat)
	return e, nil
}

func newSocket() (int, error) {
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err != nil {
		return -1, err
	}
	unix.CloseOnExec(fd)
	return fd, nil
}

// queue is not needed: here a full queue is a refusal.
func (e *entry) queue(ctx context.Context) (net.Conn, error) { return e.connect(ctx) }

func renameNoReplace(dirfd int, from, to string) error {
	return unix.RenameatxNp(dirfd, from, dirfd, to, unix.RENAME_EXCL)
}

func uidOfPeer(fd int) (int, error) {
	cred, err := unix.GetsockoptXucred(fd, unix.SOL_LOCAL, unix.LOCAL_PEERCRED)
	if err != nil {
		return 0, os.NewSyscallError("getsockopt LOCAL_PEERCRED", err)
	}
	return int(cred.Uid), nil
}

func pidOfPeer(int) (int, error) { return 0, errors.ErrUnsupported }

// openFilesCap returns the system's limit of open files for one process. The hard limit does not
// show it, as that is often "unlimited".
func openFilesCap() (uint64, bool) {
	n, err := unix.SysctlUint32("kern.maxfilesperproc")
	return uint64(n), err == nil
}
