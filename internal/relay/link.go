package relay

import (
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/duet-rpc/duet-rpc/frame"
	"github.com/duet-rpc/duet-rpc/server"
)

// flushAt is how many bytes make a write worth its system call; a message of
// that size is not copied.
const flushAt = 64 << 10

// A link is the writing side of a connection. Small messages wait for flush,
// so that what comes together goes out together. Writes block as long as the
// peer does not read: that is what stops us from reading the other side.
type link struct {
	t      server.Transport
	trace  func(message []byte) // sees what is sent; may be nil
	failed func()               // called once, when a write has failed; it must not send

	gone chan struct{} // closed when the hub at its end has gone; nil for an editor

	waits   atomic.Int64 // since when the peer is waited for, in nanoseconds; 0: it is not
	writing atomic.Int64 // since when a write is under way; 0: none is

	mu  sync.Mutex // guards the fields below, and writes
	buf []byte     // frames that are not written yet, less than flushAt
	err error      // final
}

// send frames a message and queues it, or writes it with all before it.
func (l *link) send(body []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.trace != nil {
		l.trace(body)
	}
	if len(body) < flushAt {
		l.buf = frame.Append(l.buf, frame.LSP, body)
		if len(l.buf) >= flushAt {
			l.write(nil)
		}
		return
	}
	l.buf = frame.LSP.AppendHeader(l.buf, len(body))
	l.write(body)
}

// flush writes what is queued and returns the error of the first write that
// failed.
func (l *link) flush() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.buf) > 0 {
		l.write(nil)
	}
	return l.err
}

// write writes the queue and then body; l.mu is held.
func (l *link) write(body []byte) {
	if l.err != nil {
		l.buf = l.buf[:0]
		return
	}
	l.writing.Store(time.Now().UnixNano())
	switch {
	case body == nil:
		_, l.err = l.t.Write(l.buf)
	default: // as one, where the transport can
		parts := net.Buffers{l.buf, body}
		_, l.err = parts.WriteTo(l.t)
	}
	l.writing.Store(0)
	l.buf = l.buf[:0]
	if l.err != nil && l.failed != nil {
		l.failed()
	}
}

// isStuck reports whether a write has been under way for so long that the peer
// does not read.
func (l *link) isStuck() bool {
	since := l.writing.Load()
	return since != 0 && time.Since(time.Unix(0, since)) > stuckAfter
}

// stuckAfter is how long a write takes at most to a peer that reads.
const stuckAfter = time.Second
