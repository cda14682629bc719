package server

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/duet-rpc/duet-rpc/frame"
)

// ServeUntil serves a connection as Serve does until wanted returns true for a message, which it
// borrows. Then it returns the transport for the next reader, which begins with that message and
// the bytes read after it. A write to that transport waits until everything before that message
// is answered. The caller closes it.
//
// If next is nil the connection has ended as with Serve. wanted is called for each message, in
// order, before it is served; it must not block.
func (s *Server) ServeUntil(
	ctx context.Context, t Transport, f frame.Framing, wanted func(m *frame.Message) bool,
) (next Transport, err error) {
	c := s.connect(ctx, t, f, nil)
	c.handover = &handover{wanted: wanted, begun: make(chan struct{})}
	ended := make(chan error, 1)
	go func() { ended <- c.serve(ctx) }() // until everything before is answered, or the transport is closed
	select {
	case <-c.handover.begun:
	case err = <-ended:
		if !c.isHandedOver() {
			return nil, err
		}
	}
	return &handedOver{Transport: t, rest: c.handover.rest, answered: c.done, closed: make(chan struct{})}, nil
}

// A handover passes a connection to another reader.
type handover struct {
	wanted func(m *frame.Message) bool
	begun  chan struct{} // closed by readLoop when the connection reads no more
	rest   []byte        // the next reader's first bytes; written before begun is closed
}

// handOver passes a message and the bytes read after it to the next reader. It is for readLoop.
func (c *Conn) handOver(m *frame.Message) {
	c.handover.rest = append(frame.Append(nil, c.framing, m.Body), c.reader.Rest()...)
	_ = c.t.SetReadDeadline(time.Time{})
	c.out.flush() // the handover waits for running requests
	close(c.handover.begun)
}

func (c *Conn) isHandedOver() bool {
	if c.handover == nil {
		return false
	}
	select {
	case <-c.handover.begun:
		return true
	default:
		return false
	}
}

// handedOver is a transport whose first part a Conn has served.
type handedOver struct {
	Transport
	rest     []byte          // for one reader
	answered <-chan struct{} // closed when the Conn has written its last byte

	once   sync.Once
	closed chan struct{}
}

func (h *handedOver) Read(p []byte) (int, error) {
	if len(h.rest) > 0 {
		n := copy(p, h.rest)
		h.rest = h.rest[n:]
		return n, nil
	}
	return h.Transport.Read(p)
}

func (h *handedOver) Write(p []byte) (int, error) {
	select {
	case <-h.answered:
	case <-h.closed:
		return 0, io.ErrClosedPipe
	}
	return h.Transport.Write(p)
}

func (h *handedOver) Close() error {
	h.once.Do(func() { close(h.closed) })
	return h.Transport.Close()
}

func (h *handedOver) OutlivesClose() bool { return outlivesClose(h.Transport) }

// A Transport carries the bytes of one connection. Read, Write and Close may be called at the
// same time, Read and Write each by one goroutine at a time.
//
// When a deadline passes, the blocked call and all later ones fail with os.ErrDeadlineExceeded;
// the zero time means no deadline. Write returns how much it wrote before. Close makes blocked
// calls return.
//
// Every net.Conn is a Transport. Package stdio makes one of the process's standard input and
// output, and [Pipe] makes two that are connected in memory.
//
// A Transport may have optional methods:
//
//   - WriteWithin(a, b []byte, d time.Duration) (n int, err error) writes a and
//     then b, as one if it can, and waits no longer than d for the peer to take
//     more; a negative d means no limit. It saves the deadline, and so the
//     reading of the clock, before each write, and the copy of a large result
//     behind its header.
//   - OutlivesClose() bool reports whether a call may stay blocked after Close,
//     because the Transport does not own its files. The connection then does not
//     wait for that call.
type Transport interface {
	io.ReadWriteCloser
	SetReadDeadline(t time.Time) error
	SetWriteDeadline(t time.Time) error
}

// Pipe returns the two ends of a connection inside the process, for tests and for peers in the
// same program.
func Pipe() (Transport, Transport) {
	a, b := net.Pipe()
	return a, b
}

// timedWriter is a Transport's WriteWithin.
type timedWriter interface {
	WriteWithin(a, b []byte, d time.Duration) (int, error)
}

// outlivesClose reports whether a call of t may stay blocked after Close.
func outlivesClose(t Transport) bool {
	o, ok := t.(interface{ OutlivesClose() bool })
	return ok && o.OutlivesClose()
}

// IsGone reports whether an error of a Transport means that the peer has gone, or that this end
// was closed.
func IsGone(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, syscall.EPIPE) || errors.Is(err, syscall.ECONNRESET) ||
		errors.Is(err, syscall.EIO) || errors.Is(err, io.ErrClosedPipe) || errors.Is(err, os.ErrClosed)
}
