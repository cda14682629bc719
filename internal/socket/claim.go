//go:build linux || darwin

package socket

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// unnamed is the name of a socket before it gets its own. It is short because, except on Linux,
// it must fit into a socket address together with its directory. The directory's lock is held
// while it exists.
const unnamed = ".duet~"

// claim makes a listening socket at path.
func claim(ctx context.Context, path string) (_ *net.UnixListener, remove func() error, err error) {
	d, name, err := openParent(path)
	if err != nil {
		return nil, nil, err
	}
	defer func() {
		if err != nil {
			d.Close()
		}
	}()
	unlock, err := d.lock(ctx)
	if err != nil {
		return nil, nil, err
	}
	defer unlock()

	stale, err := d.examine(ctx, name)
	if err != nil {
		return nil, nil, err
	}
	inner, id, err := d.bind()
	if err != nil {
		return nil, nil, err
	}
	if err := d.publish(name, stale); err != nil {
		inner.Close()
		return nil, nil, errors.Join(err, d.removeIf(unnamed, id))
	}
	return inner, func() error { return d.release(name, id) }, nil
}

// examine checks the file of that name. It returns nil if there is none, the id of a socket
// without a listener, and an error for anything else.
func (d *directory) examine(ctx context.Context, name string) (stale *fileID, err error) {
	path := d.join(name)
	e, err := openEntry(d.fd(), d.path, name)
	if errors.Is(err, unix.ENOENT) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("looking at what is there: %w", err)
	}
	defer e.close()
	if reason := e.foreign(); reason != "" {
		return nil, &OccupiedError{Path: path, Reason: reason}
	}
	conn, err := e.connect(ctx)
	switch {
	case err == nil:
		conn.Close()
		return nil, &InUseError{Path: path}
	case errors.Is(err, unix.ECONNREFUSED):
		return &e.id, nil
	case errors.Is(err, unix.EAGAIN), errors.Is(err, unix.EPROTOTYPE):
		// Its queue is full, or it is a socket of another type: either way it is in use.
		return nil, &InUseError{Path: path}
	case ctx.Err() != nil:
		return nil, ctx.Err()
	}
	return nil, &OccupiedError{Path: path, Reason: fmt.Sprintf("may be in use (%v)", systemError(err))}
}

// bind makes the socket, listening but still unnamed.
func (d *directory) bind() (_ *net.UnixListener, _ fileID, err error) {
	address, err := d.address(unnamed)
	if err != nil {
		return nil, fileID{}, err
	}
	if err := d.removeLeftover(); err != nil {
		return nil, fileID{}, err
	}
	fd, err := newSocket()
	if err != nil {
		return nil, fileID{}, os.NewSyscallError("socket", err)
	}
	// net.FileListener makes a copy.
	file := os.NewFile(uintptr(fd), d.join(unnamed))
	defer file.Close()
	// On Linux the file gets the mode of the socket; elsewhere the error does not matter.
	_ = unix.Fchmod(fd, 0o600)
	if err := unix.Bind(fd, &unix.SockaddrUnix{Name: address}); err != nil {
		return nil, fileID{}, os.NewSyscallError("bind", err)
	}
	defer func() {
		if err != nil {
			_ = unix.Unlinkat(d.fd(), unnamed, 0)
		}
	}()
	// No client can connect before listen, whatever the mode is until here. No other user can
	// put a link in its place in this directory.
	if err := unix.Fchmodat(d.fd(), unnamed, 0o600, 0); err != nil {
		return nil, fileID{}, os.NewSyscallError("chmod", err)
	}
	id, err := d.idOf(unnamed)
	if err != nil {
		return nil, fileID{}, err
	}
	if err := unix.Listen(fd, backlog); err != nil {
		return nil, fileID{}, os.NewSyscallError("listen", err)
	}
	l, err := net.FileListener(file)
	if err != nil {
		return nil, fileID{}, err
	}
	return l.(*net.UnixListener), id, nil
}

// removeLeftover removes the file of a process that was killed between bind and publish.
func (d *directory) removeLeftover() error {
	e, err := openEntry(d.fd(), d.path, unnamed)
	if errors.Is(err, unix.ENOENT) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("looking at what is left of an earlier socket: %w", err)
	}
	defer e.close()
	if reason := e.foreign(); reason != "" {
		return &OccupiedError{Path: d.join(unnamed), Reason: reason}
	}
	return d.removeIf(unnamed, e.id)
}

// publish gives the unnamed socket its name in place of stale.
func (d *directory) publish(name string, stale *fileID) error {
	if stale != nil {
		if err := d.removeIf(name, *stale); err != nil {
			return fmt.Errorf("removing a stale socket: %w", err)
		}
	}
	err := renameNoReplace(d.fd(), unnamed, name)
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.ENOTSUP) {
		// The file system has no such rename. A link replaces nothing either.
		if err = unix.Linkat(d.fd(), unnamed, d.fd(), name, 0); err == nil {
			err = unix.Unlinkat(d.fd(), unnamed, 0)
		}
	}
	if errors.Is(err, unix.EEXIST) {
		return &OccupiedError{Path: d.join(name), Reason: "has appeared just now"}
	}
	return os.NewSyscallError("rename", err)
}

// release removes the socket.
func (d *directory) release(name string, id fileID) error {
	defer d.Close()
	// The lock keeps a starter from replacing the socket between the check of its inode and the
	// removal. Our own processes hold it only briefly.
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if unlock, err := d.lock(ctx); err == nil {
		defer unlock()
	}
	if err := d.removeIf(name, id); err != nil {
		return fmt.Errorf("removing the socket %s: %w", d.join(name), err)
	}
	return nil
}
