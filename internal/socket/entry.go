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

// An entry is what has a name in a directory, links not followed.
type entry struct {
	id      fileID
	stat    unix.Stat_t
	address string // to connect to, for as long as the entry is open
	close   func()
}

// foreign says why the entry is no socket of ours; it is empty for one that is.
func (e *entry) foreign() string {
	switch {
	case isType(e.stat, unix.S_IFLNK):
		return "is a symbolic link"
	case !isType(e.stat, unix.S_IFSOCK):
		return "is no socket"
	case int(e.stat.Uid) != os.Geteuid():
		return fmt.Sprintf("belongs to user %d", e.stat.Uid)
	}
	return ""
}

// connect connects once, or a few times where a refusal could mean that the
// listener is busy, which the system does not tell apart.
func (e *entry) connect(ctx context.Context) (net.Conn, error) {
	const between = 20 * time.Millisecond
	for try := 1; ; try++ {
		conn, err := new(net.Dialer).DialContext(ctx, "unix", e.address)
		if try == refusalsBeforeStale || !errors.Is(err, unix.ECONNREFUSED) {
			return conn, err
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(between):
		}
	}
}

// dial connects to path and makes sure of who listens there.
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
	if errors.Is(err, unix.EAGAIN) { // its queue is full: many come at once
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

// checkListener closes conn if its listener is not of our user, who may have
// made the file all the same.
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
