package server

import (
	"errors"
	"io"
	"net"
	"os"
	"syscall"
	"time"
)

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
