package client

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"sync"
	"sync/atomic"

	"github.com/duet-rpc/duet-rpc/internal/pending"
	"github.com/duet-rpc/duet-rpc/server"
	"github.com/duet-rpc/duet-rpc/server/passfd"
)

// A link is one connection of a Client, from its opening to its loss.
type link struct {
	c     *Client
	t     *observed
	conn  *server.Conn
	calls pending.Calls
	lost  chan struct{} // closed by Client.drop: the Client has noticed the loss

	receivedAny atomic.Bool // a message came in

	mu   sync.Mutex               // guards the fields below
	gone error                    // why nothing can be sent any more; nil while it lives
	byID map[string]*Subscription // subscriptions by id
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
func (l *link) call(ctx context.Context, id uint64, method string, params json.RawMessage, arrived func(json.RawMessage)) (result json.RawMessage, sent bool, err error) {
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
	l.gone, l.byID = err, nil
	l.mu.Unlock()
	l.calls.End(err)
}

// observed is a transport that remembers its failure.
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

// cause returns the failure of the transport, if it failed.
func (o *observed) cause() error {
	if err := o.failed.Load(); err != nil {
		return *err
	}
	return nil
}

// ended waits until the process behind the transport has gone too.
func (o *observed) ended() {
	if p, ok := o.Transport.(interface{ wait() error }); ok {
		p.wait()
	}
}
