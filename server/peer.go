package server

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"sync"

	"github.com/sourcegraph/jsonrpc2"

	"github.com/duet-rpc/duet-rpc/frame"
)

// peer is the other direction of a connection: requests of ours. It is
// sourcegraph's Conn on a stream that shows it nothing but the responses to
// what it asked; everything else was served before it got there.
type peer struct {
	turn chan struct{} // holds a token while a call looks for room and is sent

	mu          sync.Mutex // guards the fields below
	conn        *jsonrpc2.Conn
	stream      *peerStream
	outstanding map[string]struct{} // raw ids of ours that wait for a response
	lastID      uint64
	closed      bool
}

// ErrInline is what Call returns to a handler that is inline: the reply could
// not be read before the handler returns. The method has to be [LongRunning].
var ErrInline = errors.New("server: Call from an inline handler would wait for itself; register the method with LongRunning")

// Call sends a request to the peer and decodes the result into result, a
// pointer or nil. params must encode to JSON; nil means none. Without a deadline
// in ctx it waits Options.CallTimeout. It fails with the peer's own error, a
// *jsonrpc2.Error; with jsonrpc2.ErrClosed if the connection ended first; with
// the error of ctx; with [ErrInline] in an inline handler. The peer is not told
// of a Call that was given up.
func (c *Conn) Call(ctx context.Context, method string, params, result any) error {
	if ctx.Value(inlineKey{}) != nil && ConnFrom(ctx) == c {
		return ErrInline
	}
	if _, has := ctx.Deadline(); !has {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, c.srv.opts.CallTimeout)
		defer cancel()
	}
	waiter, id, err := c.dispatchCall(ctx, method, params)
	if err != nil {
		return err
	}
	err = waiter.Wait(ctx, result)
	c.peer.abandon(id) // a response that comes later is not waited for
	return err
}

// dispatchCall sends a request. The Conn knows no context while it writes, and
// lets other calls wait meanwhile, so all waiting is done before: for the turn,
// and then for room.
func (c *Conn) dispatchCall(ctx context.Context, method string, params any) (waiter jsonrpc2.Waiter, id jsonrpc2.ID, err error) {
	select {
	case c.peer.turn <- struct{}{}:
		defer func() { <-c.peer.turn }()
	case <-ctx.Done():
		return waiter, id, ctx.Err()
	}
	if err := c.out.room(ctx); err != nil {
		return waiter, id, closedError(err)
	}
	conn, id, err := c.peer.begin(c)
	if err != nil {
		return waiter, id, err
	}
	waiter, err = conn.DispatchCall(ctx, method, params, jsonrpc2.PickID(id))
	if err != nil {
		c.peer.abandon(id)
		return waiter, id, closedError(err)
	}
	return waiter, id, nil
}

// closedError makes one error of all that say that nothing can be sent any more.
func closedError(err error) error {
	if errors.Is(err, errClosed) || IsGone(err) {
		return jsonrpc2.ErrClosed
	}
	return err
}

// Notify sends a notification to the peer. If the peer does not read, it
// waits for room as long as ctx lasts, but no longer than Options.CallTimeout.
// When the connection has ended the error is jsonrpc2.ErrClosed; nil means that
// the notification is queued, no more. params must encode to JSON; nil means
// none.
func (c *Conn) Notify(ctx context.Context, method string, params any) error {
	body, err := notification(method, params)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, c.srv.opts.CallTimeout)
	defer cancel()
	return closedError(c.out.send(ctx, body))
}

// begin makes sure that there is a jsonrpc2.Conn and picks an id.
func (p *peer) begin(c *Conn) (*jsonrpc2.Conn, jsonrpc2.ID, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, jsonrpc2.ID{}, jsonrpc2.ErrClosed
	}
	if p.conn == nil {
		p.stream = &peerStream{out: c.out, in: make(chan []byte, 16), done: make(chan struct{})}
		p.outstanding = make(map[string]struct{})
		// Its end is close alone: a context would end it with responses unread.
		p.conn = jsonrpc2.NewConn(context.WithoutCancel(c.baseCtx), p.stream, noRequests{}, jsonrpc2.SetLogger(discard{}))
	}
	p.lastID++
	id := jsonrpc2.ID{Num: p.lastID}
	p.outstanding[id.String()] = struct{}{}
	return p.conn, id, nil
}

// deliver hands a response to the call that waits for it, and reports whether
// one does.
func (p *peer) deliver(m *frame.Message) bool {
	p.mu.Lock()
	_, wanted := p.outstanding[string(m.ID)]
	delete(p.outstanding, string(m.ID))
	stream := p.stream
	p.mu.Unlock()
	if !wanted {
		return false
	}
	stream.put(wellFormed(m))
	return true
}

// wellFormed is a response as Conn can decode it, whatever the peer made of
// it: one that it cannot decode would end Conn.
func wellFormed(m *frame.Message) []byte {
	if m.Error == nil || string(m.Error) == "null" {
		return frame.ResultBody(m.ID, m.Result)
	}
	var e jsonrpc2.Error
	if json.Unmarshal(m.Error, &e) != nil {
		e = jsonrpc2.Error{Code: jsonrpc2.CodeInternalError, Message: "the peer answered with a malformed error"}
	}
	return frame.ErrorBody(m.ID, &e)
}

// abandon forgets a call. If it is still waited for, Conn has an entry for it
// that only a response removes, so it is given one.
func (p *peer) abandon(id jsonrpc2.ID) {
	p.mu.Lock()
	_, waiting := p.outstanding[id.String()]
	delete(p.outstanding, id.String())
	stream := p.stream
	p.mu.Unlock()
	if waiting {
		stream.put(frame.ErrorBody([]byte(id.String()), &jsonrpc2.Error{Code: CodeCancelled, Message: "abandoned"}))
	}
}

// close ends the calls that still wait. A response that has been delivered is
// theirs before: a peer may answer and be gone in one breath.
func (p *peer) close() {
	p.mu.Lock()
	conn, stream := p.conn, p.stream
	p.closed = true
	p.mu.Unlock()
	if conn != nil {
		stream.put(nil)
		<-conn.DisconnectNotify()
	}
}

// peerStream is the jsonrpc2.ObjectStream of a peer.
type peerStream struct {
	out  *outbox
	in   chan []byte // responses, and nil behind the last one
	done chan struct{}
}

func (s *peerStream) put(response []byte) {
	select {
	case s.in <- response:
	case <-s.done:
	}
}

// ReadObject implements jsonrpc2.ObjectStream.
func (s *peerStream) ReadObject(v any) error {
	select {
	case response := <-s.in:
		if response == nil {
			return io.EOF
		}
		return v.(json.Unmarshaler).UnmarshalJSON(response)
	case <-s.done:
		return io.EOF
	}
}

// WriteObject implements jsonrpc2.ObjectStream. There was room a moment ago;
// it does not wait for more.
func (s *peerStream) WriteObject(v any) error {
	body, err := frame.Encode(v)
	if err != nil {
		return err
	}
	return s.out.sendNow(body)
}

// Close implements jsonrpc2.ObjectStream. Conn calls it once.
func (s *peerStream) Close() error {
	close(s.done)
	return nil
}

// noRequests is the handler of a Conn that is never shown a request.
type noRequests struct{}

func (noRequests) Handle(context.Context, *jsonrpc2.Conn, *jsonrpc2.Request) {}

// discard is the log of a Conn, which has nothing to say that is not known.
type discard struct{}

func (discard) Printf(string, ...any) {}
