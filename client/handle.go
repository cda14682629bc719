package client

import (
	"context"
	"encoding/json"
	"slices"
	"sync/atomic"

	"github.com/sourcegraph/jsonrpc2"

	"github.com/duet-rpc/duet-rpc/server"
)

// A Notification is a message of the server that wants no answer.
type Notification struct {
	Method string
	Params json.RawMessage // nil: none
}

// A RequestHandler answers a request of the server. What it returns must
// encode to JSON. An error that is an [*Error] goes to the server as it is; of
// any other it learns only that there was one. params is nil if there are
// none. ctx ends when the server cancels the request or the connection ends.
type RequestHandler func(ctx context.Context, params json.RawMessage) (any, error)

// listener is a handler that can be taken off.
type listener[F any] struct {
	call F
	off  atomic.Bool
}

// All is the method of [Client.On] that means all.
const All = "*"

// On calls handle for each notification of method, or of all methods if it is
// [All]; see [Client.OnNotification] for one that wants their names. The
// function that it returns takes the handler off: it does not begin again.
//
// All handlers of notifications and events run one after the other in one
// goroutine, in the order in which the server sent, so a handler may use the
// Client as it likes, but others wait for it. As many as [WithQueue] says may
// wait (and no more than 16 MiB): what comes then is dropped, and counted by
// [Client.Dropped], but for events of a [Subscription], which are fetched
// again. The connection is read on in any case.
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

// without is a copy of list: somebody may be going through it.
func without[F any](list []*listener[F], l *listener[F]) []*listener[F] {
	return slices.DeleteFunc(slices.Clone(list), func(other *listener[F]) bool { return other == l })
}

// OnState calls handle for each change of state from now on, in order, in a
// goroutine that it shares with nothing else.
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

// Handle serves requests of the server for method, each in a goroutine of its
// own, at most 64 at a time; the server can cancel them. A second Handle
// replaces the handler, and nil takes it away. A method without a handler is
// answered with -32601.
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
