package client

import (
	"context"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/duet-rpc/duet-rpc/frame"
	"github.com/duet-rpc/duet-rpc/server"
)

// A State is the state of a Client's connection.
type State int

// The states of a Client.
const (
	Disconnected State = iota // permanent, unless Reconnecting follows
	Connected
	Reconnecting // the connection was lost; the Client is opening it again
	Closed       // by Close; permanent
)

func (s State) String() string {
	switch s {
	case Connected:
		return "connected"
	case Reconnecting:
		return "reconnecting"
	case Closed:
		return "closed"
	}
	return "disconnected"
}

// Reconnecting waits before each attempt: firstDelay, then twice as long each time up to
// lastDelay. Random jitter shortens each wait by up to a quarter, so that the clients of a
// restarted server do not all connect at once.
const (
	firstDelay = 100 * time.Millisecond
	lastDelay  = 30 * time.Second
	// attempt is the timeout of one attempt to connect.
	attempt = 30 * time.Second
)

// A Client is a connection to a server that survives the loss of connections.
// All its methods may be called from any goroutine.
type Client struct {
	target        Target
	opts          options
	reg           *server.Registry // serves requests of the server
	notifications *queue           // notifications and messages of streams
	states        *queue
	lastID        atomic.Uint64

	ctx    context.Context // ends with Close
	cancel context.CancelFunc
	ended  chan struct{}  // run has returned
	subs   sync.WaitGroup // their goroutines

	mu       sync.Mutex // guards the fields below
	link     *link      // nil: not connected
	gaveUp   bool       // there will be no further link
	cause    error      // the reason for having no link
	state    State
	changed  chan struct{} // closed, and replaced, when link or gaveUp change
	handlers map[string]RequestHandler
	on       map[string][]*listener[func(Notification)]
	onState  []*listener[func(State)]
}

// Close ends the connection and everything that the Client has started. Messages sent before are
// still written, and pending calls fail with [ErrClosed]. Requests of the server get a moment
// and are then cancelled. A process that the Client started sees its input close and is killed
// after 2 s.
//
// No handler begins after Close has returned, except those of OnState, of which [Closed] is the
// last. Close does not wait for a running handler, so a handler may call Close.
func (c *Client) Close() error {
	c.mu.Lock()
	if c.state != Closed {
		c.setState(Closed)
		c.gaveUp, c.cause = true, ErrClosed
		c.cancel()
		c.broadcast()
	}
	c.mu.Unlock()
	c.states.close(false)
	<-c.ended
	c.subs.Wait()
	c.notifications.close(true)
	return nil
}

// Framing returns the framing of the connection.
func (c *Client) Framing() frame.Framing { return c.opts.framing }

// State returns the current state of the connection.
func (c *Client) State() State {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.state
}

// Dropped returns how many notifications were dropped because their handlers were too slow.
// The messages of a [Subscription] are requested again instead, and do not count.
func (c *Client) Dropped() int64 { return c.notifications.dropped() }

// NextFile returns the oldest open file that the server sent (SCM_RIGHTS) and that was not
// taken. The caller owns it. A file that came with a result is available when Call returns. Only
// a [Socket] has files, or a transport that is a [server.FileReceiver]. The connection keeps some
// files that are not taken until it ends.
func (c *Client) NextFile() (*os.File, error) {
	c.mu.Lock()
	l := c.link
	c.mu.Unlock()
	if l == nil {
		return nil, ErrDisconnected
	}
	return server.NextFile(l.conn)
}

// attach makes l the connection that calls use.
func (c *Client) attach(l *link) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.state == Closed {
		return // run ends it
	}
	c.link, c.cause = l, nil
	c.setState(Connected)
	c.broadcast()
}

// drop fails the pending calls on l. Later calls wait for another connection, if there will be
// one.
func (c *Client) drop(l *link) {
	c.mu.Lock()
	c.link = nil
	var err error = ErrClosed
	if c.state != Closed {
		c.cause = l.t.cause()
		c.gaveUp = !*c.opts.reconnect
		c.setState(Disconnected)
		err = &DisconnectedError{Cause: c.cause}
	}
	c.broadcast()
	c.mu.Unlock()
	l.fail(err)
	close(l.lost)
}

// connected waits for a connection.
func (c *Client) connected(ctx context.Context, failFast bool) (*link, error) {
	for {
		c.mu.Lock()
		l, state, gaveUp, cause, changed := c.link, c.state, c.gaveUp, c.cause, c.changed
		c.mu.Unlock()
		switch {
		case state == Closed:
			return nil, ErrClosed
		case l != nil:
			return l, nil
		case gaveUp || failFast:
			return nil, &DisconnectedError{Cause: cause}
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, fmt.Errorf("%w: %w", ctx.Err(), &DisconnectedError{Cause: c.whyNot()})
		}
	}
}

func (c *Client) whyNot() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.cause
}

// broadcast wakes all goroutines that wait for a change; c.mu is held.
func (c *Client) broadcast() {
	close(c.changed)
	c.changed = make(chan struct{})
}

// setState stores a state and queues it for the handlers; c.mu is held. Closed is the last one.
func (c *Client) setState(s State) {
	if c.state == s || c.state == Closed {
		return
	}
	c.state = s
	c.states.put(0, func() {
		c.mu.Lock()
		listeners := c.onState
		c.mu.Unlock()
		for _, l := range listeners {
			if !l.off.Load() {
				l.call(s)
			}
		}
	}, nil)
}
