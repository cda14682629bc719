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

// Options are what a listener can be given beyond its path. The zero value is
// ready for use.
type Options struct {
	// Logger is told of refused clients and of trouble with accepting; by
	// default nobody is.
	Logger *slog.Logger
}

// A Listener is a Unix socket that only processes of our own user can connect
// to. All methods are safe for concurrent use.
type Listener struct {
	path   string
	logger *slog.Logger

	inner   *net.UnixListener
	remove  func() error // takes the socket's name away if it is still ours
	accept  func() (net.Conn, error)
	peerUID func(net.Conn) (int, error)
	uid     int

	refused  atomic.Uint64
	troubled atomic.Int64 // when trouble was logged last, in ns since 1970
	closed   chan struct{}
	close    func() error
}

var _ net.Listener = (*Listener)(nil)

// Listen is [Options.Listen] without options.
func Listen(ctx context.Context, path string) (*Listener, error) {
	return Options{}.Listen(ctx, path)
}

// Listen makes a socket at path, which may be relative to the working
// directory and longer than the system's limit for socket addresses (on Linux;
// elsewhere such a path is an error). ctx limits the making of it only.
//
// Directories that are missing are created with mode 0700. One that is there
// must belong to us or to root, and nobody else may write to it unless it is
// sticky like /tmp; otherwise the error is an [UnsafeError].
//
// Where path is a socket of ours it is connected to first. If somebody answers
// the error is an [InUseError]; if nobody does, it is stale and replaced.
// Anything else is left alone, and the error is an [OccupiedError].
//
// The socket has mode 0600 and is listened on before it has its name: it is
// bound under another one in the same directory, and the name is given to it
// by a rename that replaces nothing. So there is no moment in which somebody
// else could connect, or in which another starter would take it for stale. The
// umask is not used since it is the whole process's: files that other
// goroutines create meanwhile would change with it. Of several calls for one
// path at the same time, in any processes, one succeeds: they take turns by a
// lock (flock) on the directory. A file system without such locks has a short
// window in which both could find the same socket stale.
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
	l := &Listener{path: abs, logger: logger, peerUID: peerUID, uid: ourUID(), closed: make(chan struct{})}
	if l.inner, l.remove, err = claim(ctx, abs); err != nil {
		return nil, err
	}
	l.accept = l.inner.Accept
	l.close = sync.OnceValue(func() error {
		close(l.closed)
		// The name goes first: for as long as the socket is open its inode
		// cannot be another file's.
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

// Accept waits for a connection of a process of our own user, a
// [*net.UnixConn]. Those of others, root's too unless we are root, are closed
// at once, counted and logged. Where the system cannot accept just now (it is
// out of descriptors, for instance) Accept tries again, after 5 ms at first
// and 1 s at last. It gives an error, which wraps [net.ErrClosed], only after
// Close.
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
		l.tellTrouble(err)
		pause = min(max(2*pause, shortest), longest)
		select {
		case <-l.closed:
		case <-time.After(pause):
		}
	}
}

// tellTrouble logs why accepting does not work. While there is a lack of
// something it comes and goes with every client, so it is told now and then.
func (l *Listener) tellTrouble(err error) {
	const seldom = 10 * time.Second
	now, last := time.Now().UnixNano(), l.troubled.Load()
	if (last == 0 || now-last >= int64(seldom)) && l.troubled.CompareAndSwap(last, now) {
		l.logger.Warn("clients cannot be accepted just now", "path", l.path, "err", systemError(err))
	}
}

// isOurs tells whether the process at the other end is our user's, and closes
// the connection if not.
func (l *Listener) isOurs(conn net.Conn) bool {
	uid, err := l.peerUID(conn)
	if err == nil && uid == l.uid {
		return true
	}
	conn.Close()
	l.refused.Add(1)
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

// Refused is how many connections were closed because they were not our
// user's.
func (l *Listener) Refused() uint64 { return l.refused.Load() }

// Addr is the absolute path that the socket was made at. (The addresses of
// accepted connections are of no use: they have the name that the socket was
// bound under.)
func (l *Listener) Addr() net.Addr { return &net.UnixAddr{Name: l.path, Net: "unix"} }

// Close ends Accept and removes the socket, unless something else has its name
// by now. Connections stay open. A second call does nothing.
func (l *Listener) Close() error { return l.close() }
