package server

import (
	"context"
	"io"
	"sync"
	"time"

	"github.com/duet-rpc/duet-rpc/frame"
)

// ServeUntil serves a connection as Serve does until wanted reports true of a message, which it
// has borrowed. Then it returns the transport for the next reader: it begins with that message and
// what was read behind it, and a write to it waits until everything before that message was
// answered. The caller closes it. Where next is nil the connection has ended as with Serve. wanted
// is called for each message, in order, before it is served; it must not block.
func (s *Server) ServeUntil(ctx context.Context, t Transport, f frame.Framing, wanted func(m *frame.Message) bool) (next Transport, err error) {
	c := s.connect(ctx, t, f, nil)
	c.handover = &handover{wanted: wanted, begun: make(chan struct{})}
	ended := make(chan error, 1)
	go func() { ended <- c.serve(ctx) }() // until what came before is answered, or the transport is closed
	select {
	case <-c.handover.begun:
	case err = <-ended:
		if !c.isHandedOver() {
			return nil, err
		}
	}
	return &handedOver{Transport: t, rest: c.handover.rest, answered: c.done, closed: make(chan struct{})}, nil
}

// A handover is of a connection that another reader goes on with.
type handover struct {
	wanted func(m *frame.Message) bool
	begun  chan struct{} // closed by readLoop, with which the connection reads no more
	rest   []byte        // what the next reader begins with; written before begun is closed
}

// handOver gives a message and what was read behind it to the next reader. It is for readLoop.
func (c *Conn) handOver(m *frame.Message) {
	c.handover.rest = append(frame.Append(nil, c.framing, m.Body), c.reader.Rest()...)
	_ = c.t.SetReadDeadline(time.Time{})
	c.out.flush() // requests that are under way are waited for
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

// handedOver is a transport whose first part was served by a Conn.
type handedOver struct {
	Transport
	rest     []byte          // for one reader
	answered <-chan struct{} // closed when the Conn writes nothing more

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
