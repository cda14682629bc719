//go:build linux || darwin

package socket

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"

	"golang.org/x/sys/unix"
)

// dial connects to path and checks the listener.
func dial(ctx context.Context, path string) (net.Conn, error) {
	e, err := openEntry(unix.AT_FDCWD, "", path)
	if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR) {
		return nil, &NobodyError{Path: path, Err: err}
	}
	if err != nil {
		return nil, err
	}
	defer e.close()
	if reason := e.foreign(); reason != "" {
		return nil, &UnsafeError{Path: path, Reason: reason, Remedy: ourSocketsOnly}
	}
	conn, err := e.connect(ctx)
	if errors.Is(err, unix.EAGAIN) { // its queue is full: many connect at once
		conn, err = e.queue(ctx)
	}
	switch {
	case err == nil:
		return checkListener(conn, path)
	case errors.Is(err, unix.ECONNREFUSED), errors.Is(err, unix.ENOENT):
		return nil, &NobodyError{Path: path, Err: systemError(err)}
	}
	return nil, systemError(err)
}

// checkListener closes conn if its listener is another user's process, which can happen even if
// the file is ours.
func checkListener(conn net.Conn, path string) (net.Conn, error) {
	uid, err := peerUID(conn)
	if err != nil {
		conn.Close()
		return nil, fmt.Errorf("finding out who listens: %w", err)
	}
	if uid != os.Geteuid() {
		conn.Close()
		return nil, &UnsafeError{Path: path, Reason: fmt.Sprintf("is listened on by user %d", uid), Remedy: ourSocketsOnly}
	}
	return conn, nil
}

func peerUID(conn net.Conn) (int, error) {
	c, ok := conn.(*net.UnixConn)
	if !ok {
		return 0, fmt.Errorf("a %T has no user", conn)
	}
	raw, err := c.SyscallConn()
	if err != nil {
		return 0, err
	}
	var uid int
	var failed error
	if err := raw.Control(func(fd uintptr) { uid, failed = uidOfPeer(int(fd)) }); err != nil {
		return 0, err
	}
	return uid, failed
}

func ourUID() int { return os.Geteuid() }
