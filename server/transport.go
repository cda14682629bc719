package server

import (
	"io"
	"net"
	"time"
)

// A Transport carries the bytes of one connection. Read, Write and Close may
// be called at the same time, Read and Write each by one goroutine at a time.
//
// A deadline in the past or reached makes the blocked call, and those that
// follow, fail with os.ErrDeadlineExceeded; the zero time means none. Write
// tells how much it wrote before. Close makes blocked calls return.
//
// Every net.Conn is a Transport. [Stdio] and [Pipe] make others.
type Transport interface {
	io.ReadWriteCloser
	SetReadDeadline(t time.Time) error
	SetWriteDeadline(t time.Time) error
}

// Pipe makes the two ends of a connection inside the process, for tests and
// for peers that live in the same program.
func Pipe() (Transport, Transport) {
	a, b := net.Pipe()
	return a, b
}

// A patientWriter writes a and then b, as one if it can, and waits no longer
// than d for the peer to take more; a negative d means no limit. It tells how
// much it wrote. A transport that has it is spared the deadline, and so the
// look at the clock, before each write, and the copy of a large result behind
// its header.
type patientWriter interface {
	writePatiently(a, b []byte, d time.Duration) (int, error)
}

// A transport whose Read may stay blocked after Close, because what it reads
// from is not its own, says so.
type uninterruptible interface {
	readOutlivesClose()
}
