package socket

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// longestPath is in bytes. The system would take 107; 104 is the size of the smallest
	// sun_path in use, which clients may have been written for.
	longestPath = 104
	// The system reduces backlog to net.core.somaxconn.
	backlog = unix.SOMAXCONN
	// refusalsBeforeStale is one: a full queue gives EAGAIN, not a refusal.
	refusalsBeforeStale = 1
)

// address returns a short name for a file in the directory, for a socket address.
func (d *directory) address(name string) (string, error) {
	return throughProc(d.fd(), name, d.join(name))
}

// throughProc returns a path to the file name in the directory fd, or to fd itself if name is
// empty, by the links in /proc. It is short for any path, and refers to the very file fd.
// Without /proc it is the path, if that fits.
func throughProc(fd int, name, path string) (string, error) {
	link := fmt.Sprintf("/proc/self/fd/%d", fd)
	if _, err := os.Lstat(link); err == nil {
		return filepath.Join(link, name), nil
	}
	if len(path) > longestPath {
		return "", fmt.Errorf("without /proc a socket's path can have at most %d bytes, not %d: choose a shorter one",
			longestPath, len(path))
	}
	return path, nil
}

// openEntry opens the file itself, so that the client connects to the file that was checked,
// even if another one has its name by then.
func openEntry(dirfd int, dir, name string) (*entry, error) {
	fd, err := unix.Openat(dirfd, name, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: filepath.Join(dir, name), Err: err}
	}
	e := &entry{close: func() { unix.Close(fd) }}
	if err := unix.Fstat(fd, &e.stat); err != nil {
		e.close()
		return nil, &os.PathError{Op: "stat", Path: filepath.Join(dir, name), Err: err}
	}
	e.id = idOf(e.stat)
	if e.address, err = throughProc(fd, "", filepath.Join(dir, name)); err != nil {
		e.close()
		return nil, err
	}
	return e, nil
}

func newSocket() (int, error) {
	return unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
}

// queue connects to a listener whose queue is full: the system admits waiting clients in turn.
func (e *entry) queue(ctx context.Context) (net.Conn, error) {
	// slice is how long a wait lasts before the next check whether ctx has ended, which the
	// system call does not see.
	const slice = 100 * time.Millisecond
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, os.NewSyscallError("socket", err)
	}
	file := os.NewFile(uintptr(fd), e.address)
	defer file.Close() // net.FileConn makes a copy
	limit := unix.NsecToTimeval(slice.Nanoseconds())
	if err := unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_SNDTIMEO, &limit); err != nil {
		return nil, os.NewSyscallError("setsockopt", err)
	}
	for {
		switch err := unix.Connect(fd, &unix.SockaddrUnix{Name: e.address}); {
		case err == nil:
			return net.FileConn(file)
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case !errors.Is(err, unix.EAGAIN) && !errors.Is(err, unix.EINTR):
			return nil, os.NewSyscallError("connect", err)
		}
	}
}

func renameNoReplace(dirfd int, from, to string) error {
	return unix.Renameat2(dirfd, from, dirfd, to, unix.RENAME_NOREPLACE)
}

func uidOfPeer(fd int) (int, error) {
	cred, err := unix.GetsockoptUcred(fd, unix.SOL_SOCKET, unix.SO_PEERCRED)
	if err != nil {
		return 0, os.NewSyscallError("getsockopt SO_PEERCRED", err)
	}
	return int(cred.Uid), nil
}

func pidOfPeer(fd int) (int, error) {
	cred, err := unix.GetsockoptUcred(fd, unix.SOL_SOCKET, unix.SO_PEERCRED)
	if err != nil {
		return 0, os.NewSyscallError("getsockopt SO_PEERCRED", err)
	}
	return int(cred.Pid), nil
}

// openFilesCap returns the system's limit of open files for one process.
func openFilesCap() (uint64, bool) { return 0, false }
