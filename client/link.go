package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"sync"
	"sync/atomic"

	"github.com/duet-rpc/duet-rpc/frame"
	"github.com/duet-rpc/duet-rpc/internal/pending"
	"github.com/duet-rpc/duet-rpc/server"
)

// A link is one connection of a Client, from its opening to its loss.
type link struct {
	c     *Client
	t     *observed
	conn  *server.Conn
	calls pending.Calls
	lost  chan struct{} // closed by Client.drop: the Client has noticed the loss

	receivedAny atomic.Bool // a message came in

	mu   sync.Mutex      // guards the fields below
	gone error           // why sending fails; nil while it lives
	subs []*Subscription // never changed in place
}

type message struct {
	JSONRPC string          `json:"jsonrpc"`
	ID      uint64          `json:"id,omitempty"`
	Method  string          `json:"method"`
	Params  json.RawMessage `json:"params,omitempty"`
}

// wait waits until the connection, and the process behind it, has ended.
func (l *link) wait() {
	<-l.conn.Done()
	l.t.ended()
}

// call sends a request and waits for its response until ctx or the connection ends. sent reports
// whether the request was handed over. arrived, if not nil, receives the result before any later
// message, in the goroutine that reads.
func (l *link) call(
	ctx context.Context, id uint64, method string, params json.RawMessage, arrived func(json.RawMessage),
) (result json.RawMessage, sent bool, err error) {
	call, err := l.calls.Begin(id, func(r pending.Response) {
		l.receivedAny.Store(true)
		if arrived != nil && r.Error == nil {
			arrived(r.Result)
		}
	})
	if err != nil {
		return nil, false, err
	}
	if err := l.send(ctx, message{"2.0", id, method, params}); err != nil {
		call.Abandon()
		return nil, false, err
	}
	response, err := call.Wait(ctx)
	if d, ok := errors.AsType[*DisconnectedError](err); ok {
		err = &DisconnectedError{Sent: true, Cause: d.Cause}
	}
	switch {
	case err == nil && response.Error != nil:
		err = errorFrom(response.Error)
	case err != nil && ctx.Err() != nil && err == ctx.Err():
		l.cancelRequest(id)
	}
	return response.Result, true, err
}

// send hands a message to the connection; it waits for room until ctx ends.
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

// cancelRequest notifies the server that the caller has given up. With an ended context it is
// not sent if it would have to wait.
func (l *link) cancelRequest(id uint64) {
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	params, _ := json.Marshal(map[string]uint64{"id": id})
	l.conn.Send(ended, message{JSONRPC: "2.0", Method: "$/cancelRequest", Params: params})
}

// fail ends all pending calls, and every later one.
func (l *link) fail(err error) {
	l.mu.Lock()
	l.gone, l.subs = err, nil
	l.mu.Unlock()
	l.calls.End(err)
}

// observed is a transport that remembers its failure.
type observed struct {
	server.Transport
	failed atomic.Pointer[error]
}

func (o *observed) Read(p []byte) (int, error) {
	n, err := o.Transport.Read(p)
	o.observe(err)
	return n, err
}

func (o *observed) Write(p []byte) (int, error) {
	n, err := o.Transport.Write(p)
	o.observe(err)
	return n, err
}

func (o *observed) NextFile() (*os.File, error) {
	if r, ok := o.Transport.(server.FileReceiver); ok {
		return r.NextFile()
	}
	return nil, server.ErrNoFiles
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

// cause returns the failure of the transport, if it failed.
func (o *observed) cause() error {
	if err := o.failed.Load(); err != nil {
		return *err
	}
	return nil
}

// ended waits until the process behind the transport has gone too.
func (o *observed) ended() {
	if p, ok := o.Transport.(ProcessTransport); ok {
		p.Wait()
	}
}

func (c *Client) newLink(t server.Transport) *link {
	l := &link{c: c, t: &observed{Transport: t}, lost: make(chan struct{})}
	opts := server.Options{
		Limits: c.opts.limits, Logger: c.opts.logger, MaxLine: c.opts.maxMessage,
		OnResponse: l.response, OnNotification: l.notification,
	}
	if trace := c.opts.trace; trace != nil {
		opts.Trace = func(_ *server.Conn, sent bool, message []byte) { trace(sent, message) }
	}
	srv := server.New(c.reg, opts)
	l.conn = srv.Connect(context.Background(), l.t, c.opts.framing)
	return l
}

// response handles a message without a method.
func (l *link) response(_ *server.Conn, m *frame.Message) {
	logger := l.c.opts.logger
	switch hasID := m.ID != nil && string(m.ID) != "null"; {
	case string(m.JSONRPC) != `"2.0"`:
		logger.Debug("message ignored: it is not JSON-RPC 2.0")
	case hasID && !l.calls.Deliver(m):
		logger.Debug("response ignored: no request waits for it")
	case hasID:
	case m.Result != nil:
		l.receivedAny.Store(true)
		logger.Debug("result ignored: it has no id")
	default:
		l.receivedAny.Store(true)
		logger.Warn("the server refused a message of ours", "error", errorFrom(m.Error))
	}
}

// notification offers a notification to the subscriptions, and queues it for its handlers.
func (l *link) notification(_ *server.Conn, method string, params json.RawMessage) {
	l.receivedAny.Store(true)
	params = bytes.Clone(params)
	l.offer(method, params)
	c := l.c
	c.mu.Lock()
	wanted := len(c.on[method]) > 0 || len(c.on[All]) > 0
	c.mu.Unlock()
	if !wanted {
		return
	}
	n := Notification{method, params}
	if !c.notifications.put(len(params)+len(method), func() { c.dispatch(n) }, nil) && c.ctx.Err() == nil {
		c.opts.logger.Warn("notification dropped: handlers do not keep up", "method", method)
	}
}
