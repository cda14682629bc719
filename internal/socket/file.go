package socket

import (
	"errors"
	"net"
	"os"
	"sync"
)

// MostQueuedFiles is how many received files a [FileConn] keeps for [FileConn.NextFile]. Further
// files are closed, so that a peer cannot use up our descriptors.
const MostQueuedFiles = 16

// ErrNoFile reports that no received file is waiting.
var ErrNoFile = errors.New("no file has been received")

// A Sender is a connection that open files can be sent on.
type Sender struct{ *net.UnixConn }

// WriteFile is Write, with a copy of the open file f that the peer gets no later than the first
// byte of p, which cannot be empty. If it wrote nothing, f was not sent. The write deadline
// applies.
func (s Sender) WriteFile(p []byte, f *os.File) (n int, err error) {
	return writeFile(s.UnixConn, p, f)
}

// Senders returns a listener whose connections are a [Sender] if they come from a Unix socket.
func Senders(l net.Listener) net.Listener { return senders{l} }

type senders struct{ net.Listener }

func (l senders) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if c, ok := conn.(*net.UnixConn); ok {
		return Sender{c}, err
	}
	return conn, err
}

// ReceivingFiles returns a [FileConn] on conn, if it is a Unix socket and the system can pass
// files; else conn itself.
func ReceivingFiles(conn net.Conn) net.Conn {
	if c, ok := conn.(*net.UnixConn); ok && passesFiles {
		return NewFileConn(c)
	}
	return conn
}

// A FileConn is a connection whose Read keeps the open files that the peer sends among the bytes
// (SCM_RIGHTS). All reads from the connection must go through it: an ordinary Read closes the
// files that it passes. One goroutine may read while others write, call NextFile and Close.
type FileConn struct {
	net.Conn
	unix *net.UnixConn
	oob  []byte // a buffer of Read's

	mu      sync.Mutex
	closed  bool
	files   []*os.File
	dropped uint64
}

// NewFileConn makes a FileConn on conn, which it then owns.
func NewFileConn(conn *net.UnixConn) *FileConn {
	return &FileConn{Conn: conn, unix: conn}
}

// WriteFile is [Sender.WriteFile].
func (c *FileConn) WriteFile(p []byte, f *os.File) (n int, err error) {
	return writeFile(c.unix, p, f)
}

// CloseWrite closes the writing side: the peer reads the end.
func (c *FileConn) CloseWrite() error { return c.unix.CloseWrite() }

// Read reads bytes like [net.Conn] and queues the files that came with them. A file that was
// sent with a payload is queued no later than the payload's first byte is returned.
func (c *FileConn) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	n, files, err := readWithFiles(c.unix, p, &c.oob)
	for _, f := range files {
		c.keep(f)
	}
	return n, err
}

// NextFile returns the oldest received file that was not taken yet, which the caller then owns,
// or [ErrNoFile]. It is closed in children (O_CLOEXEC). Unless it is a regular file or directory
// it is in non-blocking mode, so that Close ends a Read on it; the peer shares that mode.
func (c *FileConn) NextFile() (*os.File, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.files) == 0 {
		return nil, ErrNoFile
	}
	f := c.files[0]
	c.files = c.files[1:]
	return f, nil
}

// Close closes the connection and the files that were not taken.
func (c *FileConn) Close() error {
	c.mu.Lock()
	c.closed = true
	files := c.files
	c.files = nil
	c.mu.Unlock()
	for _, f := range files {
		f.Close()
	}
	return c.unix.Close()
}

// keep queues f, or closes it if the queue is full.
func (c *FileConn) keep(f *os.File) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed || len(c.files) >= MostQueuedFiles {
		c.dropped++
		f.Close()
		return
	}
	c.files = append(c.files, f)
}
