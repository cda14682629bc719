//go:build linux || darwin

package socket

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"

	"golang.org/x/sys/unix"
)

// dial connects to path and checks the listener.
func dial(ctx context.Context, path string) (net.Conn, error) {
	e, err := openEntry(unix.AT_FDCWD, "", path)
	if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR) {
		return nil, &NoListenerError{Path: path, Err: err}
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
		return nil, &NoListenerError{Path: path, Err: systemError(err)}
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
		return nil, &UnsafeError{
			Path: path, Reason: fmt.Sprintf("is listened on by user %d", uid), Remedy: ourSocketsOnly,
		}
	}
	return conn, nil
}

func peerUID(conn net.Conn) (int, error) { return credential(conn, uidOfPeer) }

func peerPID(conn net.Conn) (int, error) { return credential(conn, pidOfPeer) }

// credential reads what the system recorded about the process at the other end of a connection.
func credential(conn net.Conn, read func(fd int) (int, error)) (int, error) {
	c, ok := conn.(*net.UnixConn)
	if !ok {
		return 0, fmt.Errorf("a %T has no user", conn)
	}
	raw, err := c.SyscallConn()
	if err != nil {
		return 0, err
	}
	var value int
	var failed error
	if err := raw.Control(func(fd uintptr) { value, failed = read(int(fd)) }); err != nil {
		return 0, err
	}
	return value, failed
}

func ourUID() int { return os.Geteuid() }

// mostFilesAMessage is more than any system lets one message carry (Linux: 253). With a smaller
// buffer macOS would leave the rest open in this process without reporting their numbers.
const mostFilesAMessage = 512

// writeFile writes payload to conn with a copy of the open file f, which the caller keeps, and
// returns how much of payload was written. The peer gets the file no later than payload's first
// byte, so payload cannot be empty. It must not run at the same time as another write to conn: the
// bytes of both could mix.
func writeFile(conn *net.UnixConn, payload []byte, f *os.File) (n int, err error) {
	if len(payload) == 0 {
		return 0, errors.New("sending a file: it needs a payload to go with")
	}
	// Not f.Fd, which would put f into blocking mode.
	raw, err := f.SyscallConn()
	if err != nil {
		return 0, fmt.Errorf("sending a file: %w", err)
	}
	var failed error
	// f cannot be closed, nor its number reused, before Control returns.
	if err := raw.Control(func(fd uintptr) {
		n, _, failed = conn.WriteMsgUnix(payload, unix.UnixRights(int(fd)), nil)
		n = max(n, 0)
	}); err != nil {
		return 0, fmt.Errorf("sending a file: %w", err)
	}
	if failed == nil && n < len(payload) {
		var more int
		more, failed = conn.Write(payload[n:])
		n += more
	}
	if failed != nil {
		return n, fmt.Errorf("sending a file: %w", failed)
	}
	return n, nil
}

// passesFiles reports whether the system can pass open files.
const passesFiles = true

// readWithFiles reads bytes, and the files that were sent with them. oob is a buffer that is
// kept for reuse.
func readWithFiles(conn *net.UnixConn, p []byte, oob *[]byte) (n int, files []*os.File, err error) {
	if *oob == nil {
		*oob = make([]byte, unix.CmsgSpace(4*mostFilesAMessage))
	}
	// If the system supports it the descriptors are close-on-exec from the first moment,
	// elsewhere before a child can start.
	n, oobn, _, _, err := conn.ReadMsgUnix(p, *oob)
	n = max(n, 0) // -1 with some errors
	if oobn > 0 {
		var rightsErr error
		if files, rightsErr = filesOf((*oob)[:oobn]); err == nil {
			err = rightsErr
		}
	}
	if n == 0 && err == nil {
		err = io.EOF
	}
	return n, files, err
}

// filesOf returns the files that a control message carries; there may be some even with an
// error.
func filesOf(oob []byte) (files []*os.File, err error) {
	messages, err := unix.ParseSocketControlMessage(oob)
	if err != nil {
		return nil, fmt.Errorf("receiving a file: %w", err)
	}
	for _, m := range messages {
		if m.Header.Level != unix.SOL_SOCKET || m.Header.Type != unix.SCM_RIGHTS {
			continue
		}
		fds, err := unix.ParseUnixRights(&m)
		if err != nil {
			return files, fmt.Errorf("receiving a file: %w", err)
		}
		for _, fd := range fds {
			files = append(files, newFile(fd))
		}
	}
	return files, nil
}

// newFile makes an os.File of a descriptor. Its mode must be right before: os.NewFile uses it to
// decide whether Go's poller can have it.
func newFile(fd int) *os.File {
	unix.CloseOnExec(fd)
	var stat unix.Stat_t
	if unix.Fstat(fd, &stat) == nil && !isType(stat, unix.S_IFREG) && !isType(stat, unix.S_IFDIR) {
		_ = unix.SetNonblock(fd, true)
	}
	return os.NewFile(uintptr(fd), "received file")
}

// RaiseFileLimit raises the number of files that this process may have open (RLIMIT_NOFILE) from
// the soft limit to the hard one, and returns it. Every client takes a file. Go does the same
// when a program starts, so usually nothing remains to do. Children then still get the original
// limit; if this call had to raise the limit, they get the raised one.
func RaiseFileLimit() (uint64, error) {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		return 0, fmt.Errorf("reading the limit of open files: %w", err)
	}
	want := limit.Max
	if most, ok := openFilesCap(); ok {
		want = min(want, most)
	}
	if limit.Cur >= want {
		return limit.Cur, nil
	}
	was := limit.Cur
	limit.Cur = want
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		return was, fmt.Errorf("raising the limit of open files from %d to %d: %w", was, want, err)
	}
	return want, nil
}
