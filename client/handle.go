package client

import (
	"context"
	"encoding/json"
	"slices"
	"sync/atomic"

	"github.com/sourcegraph/jsonrpc2"

	"github.com/duet-rpc/duet-rpc/server"
)

// A Notification is a message of the server that has no response.
type Notification struct {
	Method string
	Params json.RawMessage // nil: none
}

// A RequestHandler answers a request of the server. Its result must encode to JSON. An error
// that is an [*Error] goes to the server as it is; for any other the server learns only that the
// handler failed. params is nil if there are none. ctx ends when the server cancels the request
// or the connection ends.
type RequestHandler func(ctx context.Context, params json.RawMessage) (any, error)

// listener is a handler that can be removed.
type listener[F any] struct {
	call F
	off  atomic.Bool
}

// All is the method that makes [Client.On] receive all notifications.
const All = "*"

// On calls handle for each notification of method, or of all methods if it is [All];
// [Client.OnNotification] also passes their names. The returned function removes the handler: it
// is not called again.
//
// One goroutine runs all handlers of notifications and streams one after the other, in the order
// in which the server sent. So a handler may use the Client freely, but others wait for it.
// [WithQueue] bounds how many may wait, and they hold at most 16 MiB. Beyond that, notifications
// are dropped and counted by [Client.Dropped]; messages of a [Subscription] are requested again. The
// Client continues to read from the connection in any case.
func (c *Client) On(method string, handle func(params json.RawMessage)) (off func()) {
	return c.listen(method, func(n Notification) { handle(n.Params) })
}

// OnNotification calls handle for each notification, as On does for [All].
func (c *Client) OnNotification(handle func(Notification)) (off func()) { return c.listen(All, handle) }

func (c *Client) listen(method string, handle func(Notification)) (off func()) {
	l := &listener[func(Notification)]{call: handle}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.on[method] = append(slices.Clip(c.on[method]), l)
	return func() {
		l.off.Store(true)
		c.mu.Lock()
		defer c.mu.Unlock()
		c.on[method] = without(c.on[method], l)
		if len(c.on[method]) == 0 {
			delete(c.on, method)
		}
	}
}

// without returns a copy of list without l: another goroutine may be iterating over list.
func without[F any](list []*listener[F], l *listener[F]) []*listener[F] {
	return slices.DeleteFunc(slices.Clone(list), func(other *listener[F]) bool { return other == l })
}

// OnState calls handle for each later change of state, in order, in a goroutine of its own.
func (c *Client) OnState(handle func(State)) (off func()) {
	l := &listener[func(State)]{call: handle}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.onState = append(slices.Clip(c.onState), l)
	return func() {
		l.off.Store(true)
		c.mu.Lock()
		defer c.mu.Unlock()
		c.onState = without(c.onState, l)
	}
}

// dispatch calls the handlers of a notification.
func (c *Client) dispatch(n Notification) {
	c.mu.Lock()
	lists := [][]*listener[func(Notification)]{c.on[n.Method], c.on[All]}
	c.mu.Unlock()
	if n.Method == All {
		lists = lists[1:]
	}
	for _, list := range lists {
		for _, l := range list {
			if !l.off.Load() && c.ctx.Err() == nil {
				l.call(n)
			}
		}
	}
}

// Handle serves requests of the server for method, each in its own goroutine, at most 64 at a
// time; the server can cancel them. A second Handle replaces the handler, and nil removes it. A
// method without a handler is answered with -32601.
func (c *Client) Handle(method string, handle RequestHandler) {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, registered := c.handlers[method]
	c.handlers[method] = handle
	if registered {
		return
	}
	server.HandleRaw(c.reg, method, func(ctx context.Context, params json.RawMessage) (json.RawMessage, error) {
		c.mu.Lock()
		handle := c.handlers[method]
		c.mu.Unlock()
		if handle == nil {
			return nil, server.NewError(jsonrpc2.CodeMethodNotFound, "Method not found: "+method, nil)
		}
		result, err := handle(ctx, params)
		if err != nil {
			return nil, wireError(err)
		}
		return encodeJSON(result)
	}, server.LongRunning())
}
