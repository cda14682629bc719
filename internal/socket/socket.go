// Package socket listens on and connects to Unix sockets that belong to one user, finds the
// socket of a project's hub, and passes open files over a socket.
//
// # Protection against other users
//
// Every check is made on an open file, never on a path that could mean another file a moment
// later. The directory of a socket is opened once, checked, and used for all later steps. On
// Linux the socket file is opened (O_PATH) before its owner is checked, and the client connects
// to exactly that file. A symbolic link in the place of a socket is never followed. Both sides
// check the other one's uid, which the kernel records (SO_PEERCRED on Linux, LOCAL_PEERCRED on
// macOS), and refuse another user's process.
//
// # Systems
//
// Linux and macOS. Elsewhere everything but [Path] and [Find] returns an error that wraps
// [errors.ErrUnsupported].
package socket

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Options are the options of a listener. The zero value is ready for use.
type Options struct {
	// Logger logs refused clients and failures to accept; by default there is no log.
	Logger *slog.Logger
	// Refuse, if set, reports whether a process of our own user may not connect, by its ID. It is
	// called on Linux only.
	Refuse func(pid int) bool
}

// A Listener is a Unix socket that only processes of our own user can connect to. All methods
// are safe for concurrent use.
type Listener struct {
	path   string
	logger *slog.Logger

	inner   *net.UnixListener
	remove  func() error // removes the socket's file if it is still ours
	accept  func() (net.Conn, error)
	peerUID func(net.Conn) (int, error)
	refuse  func(pid int) bool // nil: no process
	uid     int

	began      time.Time
	lastLogged atomic.Int64 // when a failure was logged last, in ns since began; 0: never
	closed     chan struct{}
	close      func() error
}

var _ net.Listener = (*Listener)(nil)

// Listen is [Options.Listen] without options.
func Listen(ctx context.Context, path string) (*Listener, error) {
	return Options{}.Listen(ctx, path)
}

// Listen makes a socket at path, which may be relative to the working directory and, on Linux,
// longer than the system's limit for socket addresses. ctx limits only the making of it.
//
// Missing directories are created with mode 0700. An existing directory must belong to us or to
// root, and no other user may write to it unless it is sticky like /tmp; otherwise the error is
// an [UnsafeError].
//
// If path is a socket of ours, Listen connects to it first. If a process answers the error is an
// [InUseError]; if none does, the socket is stale and replaced. Anything else is left alone, and
// the error is an [OccupiedError].
//
// The socket has mode 0600 and listens before it has its name: it is bound under another name in
// the same directory, and a rename that replaces nothing gives it its own. So at no moment can
// another user connect, or another starter take it for stale. The umask is not used because it
// belongs to the whole process and would change files that other goroutines create meanwhile. Of
// several calls for one path at the same time, in any processes, one succeeds: they take turns
// by a lock (flock) on the directory. A file system without such locks has a short window in
// which both could find the same socket stale.
func (o Options) Listen(ctx context.Context, path string) (*Listener, error) {
	l, err := o.listen(ctx, path)
	if err != nil {
		return nil, fmt.Errorf("listening on %s: %w", path, err)
	}
	return l, nil
}

func (o Options) listen(ctx context.Context, path string) (*Listener, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	abs, err := absolute(path)
	if err != nil {
		return nil, err
	}
	logger := o.Logger
	if logger == nil {
		logger = slog.New(slog.DiscardHandler)
	}
	l := &Listener{
		path: abs, logger: logger, peerUID: peerUID, refuse: o.Refuse, uid: ourUID(), began: time.Now(), closed: make(chan struct{}),
	}
	if l.inner, l.remove, err = claim(ctx, abs); err != nil {
		return nil, err
	}
	l.accept = l.inner.Accept
	l.close = sync.OnceValue(func() error {
		close(l.closed)
		// The name goes first: while the socket is open its inode cannot be reused.
		return errors.Join(l.remove(), l.inner.Close())
	})
	return l, nil
}

func absolute(path string) (string, error) {
	if path == "" || strings.HasSuffix(path, "/") {
		return "", errors.New("a socket needs a file name")
	}
	if strings.ContainsRune(path, 0) {
		return "", errors.New("a file name cannot contain a NUL character")
	}
	abs, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	if abs == filepath.Dir(abs) {
		return "", errors.New("a socket needs a file name")
	}
	return abs, nil
}

// Accept waits for a connection of a process of our own user, a [*net.UnixConn]. Those of
// others, root's too unless we are root, are closed at once, counted and logged. If the system
// cannot accept now (for example, it is out of descriptors) Accept retries, after 5 ms at first
// and up to 1 s. It returns an error, which wraps [net.ErrClosed], only after Close.
func (l *Listener) Accept() (net.Conn, error) {
	const (
		shortest = 5 * time.Millisecond
		longest  = time.Second
	)
	var pause time.Duration
	for {
		conn, err := l.accept()
		if err == nil {
			pause = 0
			if l.isOurs(conn) {
				return conn, nil
			}
			continue
		}
		if l.isClosed() || errors.Is(err, net.ErrClosed) {
			return nil, fmt.Errorf("accepting on %s: %w", l.path, net.ErrClosed)
		}
		l.logAcceptError(err)
		pause = min(max(2*pause, shortest), longest)
		select {
		case <-l.closed:
		case <-time.After(pause):
		}
	}
}

// logAcceptError logs why accepting fails. A shortage comes and goes with every client, so it is
// logged now and then.
func (l *Listener) logAcceptError(err error) {
	const seldom = 10 * time.Second
	now, last := max(1, int64(time.Since(l.began))), l.lastLogged.Load()
	if (last == 0 || now-last >= int64(seldom)) && l.lastLogged.CompareAndSwap(last, now) {
		l.logger.Warn("clients cannot be accepted just now", "path", l.path, "err", systemError(err))
	}
}

// isOurs reports whether the process at the other end is our user's, and closes the connection
// if not.
func (l *Listener) isOurs(conn net.Conn) bool {
	uid, err := l.peerUID(conn)
	if err == nil && uid == l.uid {
		if pid, err := peerPID(conn); l.refuse == nil || err != nil || !l.refuse(pid) {
			return true
		}
		conn.Close()
		l.logger.Warn("a client is refused: it runs in a sandbox, or has ended", "path", l.path)
		return false
	}
	defer conn.Close()
	if err != nil {
		l.logger.Warn("a client is refused: its user cannot be found out", "path", l.path, "err", err)
	} else {
		l.logger.Warn("a client of another user is refused", "path", l.path, "uid", uid)
	}
	return false
}

func (l *Listener) isClosed() bool {
	select {
	case <-l.closed:
		return true
	default:
		return false
	}
}

// Addr returns the absolute path of the socket. (The addresses of accepted connections are
// useless: they contain the name that the socket was bound under.)
func (l *Listener) Addr() net.Addr { return &net.UnixAddr{Name: l.path, Net: "unix"} }

// Close ends Accept and removes the socket, unless another file has its name by now. Connections
// stay open. A second call does nothing.
func (l *Listener) Close() error { return l.close() }

// Dial connects to the socket at path, which may be longer than the system's limit for socket
// addresses on Linux. The connection is a [*net.UnixConn].
//
// The error is a [NoListenerError] if there is no file or no listener. It is an [UnsafeError] if the
// file is not a socket, is a symbolic link or belongs to another user. It is also an
// [UnsafeError] if another user's process listens; nothing was sent to that process. If a
// listener's queue is full, Dial waits for its turn until ctx ends.
func Dial(ctx context.Context, path string) (net.Conn, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("connecting to %s: %w", path, err)
	}
	abs, err := absolute(path)
	if err != nil {
		return nil, fmt.Errorf("connecting to %s: %w", path, err)
	}
	conn, err := dial(ctx, abs)
	if err != nil {
		return nil, fmt.Errorf("connecting to %s: %w", path, err)
	}
	return conn, nil
}
