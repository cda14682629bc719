package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/duet-rpc/duet-rpc/frame"
	"github.com/duet-rpc/duet-rpc/server"
	"github.com/duet-rpc/duet-rpc/server/passfd"
)

// A link is one connection of a Client, from its opening to its loss.
type link struct {
	c    *Client
	t    *observed
	conn *server.Conn
	lost chan struct{} // closed by Client.drop: the Client knows of the loss

	heard atomic.Bool // a message came in

	mu      sync.Mutex // guards the fields below
	gone    error      // why calls fail from now on; nil while it lives
	pending map[string]*pending
	byID    map[string]*Subscription // whose events carry which id
}

// pending is a request that waits for its response.
type pending struct {
	done chan outcome // takes one
	// arrived, if not nil, sees the result before any message that comes
	// behind it, in the goroutine that reads.
	arrived func(result json.RawMessage)
}

type outcome struct {
	result json.RawMessage
	err    error
}

type message struct {
	JSONRPC string          `json:"jsonrpc"`
	ID      uint64          `json:"id,omitempty"`
	Method  string          `json:"method"`
	Params  json.RawMessage `json:"params,omitempty"`
}

func (c *Client) newLink(t server.Transport) *link {
	l := &link{
		c: c, t: &observed{Transport: t}, lost: make(chan struct{}),
		pending: make(map[string]*pending), byID: make(map[string]*Subscription),
	}
	opts := server.Options{
		Limits: c.opts.limits, Logger: c.opts.logger,
		MaxLine: c.opts.maxMessage, Intercept: l.intercept,
	}
	if trace := c.opts.trace; trace != nil {
		opts.Trace = func(_ *server.Conn, sent bool, message []byte) { trace(sent, message) }
	}
	srv := server.New(c.reg, opts)
	l.conn = srv.Connect(context.Background(), l.t, c.opts.framing)
	return l
}

// wait waits until the connection, and what is behind it, has ended.
func (l *link) wait() {
	<-l.conn.Done()
	l.t.ended()
}

// call sends a request and waits for its response as long as ctx and the
// connection last. sent reports whether the request was handed over.
func (l *link) call(ctx context.Context, id uint64, method string, params json.RawMessage, arrived func(json.RawMessage)) (result json.RawMessage, sent bool, err error) {
	key := strconv.FormatUint(id, 10)
	p := &pending{done: make(chan outcome, 1), arrived: arrived}
	l.mu.Lock()
	if l.gone != nil {
		defer l.mu.Unlock()
		return nil, false, l.gone
	}
	l.pending[key] = p
	l.mu.Unlock()
	if err := l.send(ctx, message{"2.0", id, method, params}); err != nil {
		l.forget(key)
		return nil, false, err
	}
	select {
	case out := <-p.done:
		return out.result, true, out.err
	case <-ctx.Done():
		if !l.forget(key) { // it came at the same moment
			out := <-p.done
			return out.result, true, out.err
		}
		l.cancelRequest(id)
		return nil, true, ctx.Err()
	}
}

// send hands a message to the connection; it waits for room as long as ctx
// lasts.
func (l *link) send(ctx context.Context, m message) error {
	switch err := l.conn.Send(ctx, m); {
	case err == nil:
		return nil
	case errors.Is(err, server.ErrTooLong):
		return ErrTooLong
	case ctx.Err() != nil:
		return ctx.Err()
	default: // the connection is ending
		select {
		case <-l.lost:
		case <-ctx.Done():
			return ctx.Err()
		}
		l.mu.Lock()
		defer l.mu.Unlock()
		return l.gone
	}
}

// cancelRequest tells the server that nobody waits any more. An ended context
// means that it is not sent where it would have to wait.
func (l *link) cancelRequest(id uint64) {
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	params, _ := json.Marshal(map[string]uint64{"id": id})
	l.conn.Send(ended, message{JSONRPC: "2.0", Method: "$/cancelRequest", Params: params})
}

// forget reports whether the request was still pending.
func (l *link) forget(key string) bool {
	_, ok := l.take(key)
	return ok
}

func (l *link) take(key string) (*pending, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	p, ok := l.pending[key]
	delete(l.pending, key)
	return p, ok
}

// fail ends what is pending, and every later call. A *DisconnectedError has
// been sent where a request was.
func (l *link) fail(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.gone = err
	if d, ok := err.(*DisconnectedError); ok {
		err = &DisconnectedError{Sent: true, Cause: d.Cause}
	}
	for _, p := range l.pending {
		p.done <- outcome{err: err}
	}
	l.pending, l.byID = nil, nil
}

// intercept sees all that comes in; what it does not take is a request, and
// served by the registry.
func (l *link) intercept(_ *server.Conn, m *frame.Message) (taken bool) {
	if string(m.JSONRPC) != `"2.0"` {
		l.c.opts.logger.Debug("message ignored: it is not JSON-RPC 2.0")
		return true
	}
	l.heard.Store(true)
	switch {
	case m.Method == nil:
		l.response(m)
		return true
	case m.ID == nil:
		var method string
		if json.Unmarshal(m.Method, &method) != nil {
			return true
		}
		if method == "$/cancelRequest" { // of a request that the registry serves
			return false
		}
		l.notification(method, bytes.Clone(m.Params))
		return true
	}
	return false
}

func (l *link) response(m *frame.Message) {
	if m.ID == nil || string(m.ID) == "null" {
		switch {
		case m.Result != nil:
			l.event("", m.Result)
		default:
			l.c.opts.logger.Warn("the server refused a message of ours", "error", errorFrom(m.Error))
		}
		return
	}
	p, ok := l.take(string(m.ID))
	if !ok {
		l.c.opts.logger.Debug("response ignored: nobody waits for it")
		return
	}
	if m.Error != nil && string(m.Error) != "null" {
		p.done <- outcome{err: errorFrom(m.Error)}
		return
	}
	result := json.RawMessage(bytes.Clone(m.Result)) // absent where a library dropped undefined
	if result == nil {
		result = json.RawMessage("null")
	}
	if p.arrived != nil {
		p.arrived(result)
	}
	p.done <- outcome{result: result}
}

// observed is a transport that remembers why it failed.
type observed struct {
	server.Transport
	failed atomic.Pointer[error]
}

// Read implements server.Transport.
func (o *observed) Read(p []byte) (int, error) {
	n, err := o.Transport.Read(p)
	o.observe(err)
	return n, err
}

// Write implements server.Transport.
func (o *observed) Write(p []byte) (int, error) {
	n, err := o.Transport.Write(p)
	o.observe(err)
	return n, err
}

// NextFile implements passfd.Receiver.
func (o *observed) NextFile() (*os.File, error) {
	if r, ok := o.Transport.(passfd.Receiver); ok {
		return r.NextFile()
	}
	return nil, passfd.ErrNoFiles
}

func (o *observed) observe(err error) {
	var timeout interface{ Timeout() bool }
	if err == nil || errors.As(err, &timeout) && timeout.Timeout() {
		return
	}
	if err == io.EOF {
		err = errors.New("the server closed the connection")
	}
	o.failed.CompareAndSwap(nil, &err)
}

// cause is why the transport failed, if it did.
func (o *observed) cause() error {
	if err := o.failed.Load(); err != nil {
		return *err
	}
	return nil
}

// ended waits until what is behind the transport has gone too.
func (o *observed) ended() {
	if p, ok := o.Transport.(interface{ wait() error }); ok {
		p.wait()
	}
}
