package server

import (
	"context"
	"io"
	"sync"
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
func (s *Server) ServeUntil(ctx context.Context, t Transport, f frame.Framing, wanted func(m *frame.Message) bool) (next Transport, err error) {
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
