package client

import (
	"context"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/duet-rpc/duet-rpc/server"
	"github.com/duet-rpc/duet-rpc/server/passfd"
)

// A State is how a Client is connected.
type State int

// The states of a Client.
const (
	Disconnected State = iota // and it stays so, unless Reconnecting follows
	Connected
	Reconnecting // the connection was lost, and is being opened again
	Closed       // for good
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

// Reconnecting waits before each attempt: firstDelay, then twice as long each
// time up to lastDelay, each shortened by up to a quarter by chance, so that
// the clients of a server that comes back do not all come at once.
const (
	firstDelay = 100 * time.Millisecond
	lastDelay  = 30 * time.Second
	// attempt bounds one opening of a connection.
	attempt = 30 * time.Second
)

// A Client is a connection to a server that survives the loss of connections.
// All its methods may be called from any goroutine.
type Client struct {
	target        Target
	opts          options
	reg           *server.Registry // requests of the server
	notifications *queue           // notifications and events
	states        *queue
	lastID        atomic.Uint64

	ctx    context.Context // ends with Close
	cancel context.CancelFunc
	ended  chan struct{}  // run has returned
	subs   sync.WaitGroup // their goroutines

	mu         sync.Mutex // guards the fields below
	link       *link      // nil: none now
	gaveUp     bool       // there will be no other link
	cause      error      // why there is none
	state      State
	changed    chan struct{} // closed, and replaced, when link or gaveUp change
	handlers   map[string]RequestHandler
	on         map[string][]*listener[func(Notification)]
	onState    []*listener[func(State)]
	lineEvents *Subscription // the one that a connection of lines may have
}

// Close ends the connection and what the Client has started: what was sent
// before is still written, pending calls fail with [ErrClosed], requests of
// the server are given a moment and cancelled, a process that the Client
// started is told of the end and killed after 2 s. No handler begins after
// Close has returned, but those of OnState, of which [Closed] is the last; one
// that is running is not waited for, so that it may call Close itself.
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

// State is how the Client is connected now.
func (c *Client) State() State {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.state
}

// Dropped is how many notifications were dropped because their handlers did
// not keep up. Events of a [Subscription] are fetched again instead, and do
// not count.
func (c *Client) Dropped() int64 { return c.notifications.dropped() }

// NextFile is the oldest open file that the server sent and nobody has taken
// (SCM_RIGHTS), which is then the caller's. One that came with a result is
// there when Call returns. Only a [Socket] has files, or a transport that is a
// [passfd.Receiver]; some that nobody takes are kept until the connection
// ends.
func (c *Client) NextFile() (*os.File, error) {
	c.mu.Lock()
	l := c.link
	c.mu.Unlock()
	if l == nil {
		return nil, ErrDisconnected
	}
	return passfd.Next(l.conn)
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

// drop fails what is pending on l. From then on calls wait for another
// connection, if there will be one.
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

// broadcast wakes whoever waits for a change; c.mu is held.
func (c *Client) broadcast() {
	close(c.changed)
	c.changed = make(chan struct{})
}

// setState notes a state and tells it; c.mu is held. Closed is the last one.
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
