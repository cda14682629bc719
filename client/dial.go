package client

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
	"time"

	"github.com/duet-rpc/duet-rpc/frame"
	"github.com/duet-rpc/duet-rpc/internal/socket"
	"github.com/duet-rpc/duet-rpc/server"
)

// Dial connects to target. ctx bounds only the dialling; the Client lives until [Client.Close].
func Dial(ctx context.Context, target Target, opts ...Option) (*Client, error) {
	c := &Client{
		target: target, opts: newOptions(opts), reg: server.NewRegistry(),
		states: newQueue(1 << 10), ended: make(chan struct{}), changed: make(chan struct{}),
		handlers: make(map[string]RequestHandler), on: make(map[string][]*listener[func(Notification)]),
	}
	if err := c.opts.complete(target); err != nil {
		return nil, err
	}
	c.notifications = newQueue(c.opts.queue)
	c.ctx, c.cancel = context.WithCancel(context.Background())
	for _, setup := range c.opts.setup {
		setup(c)
	}
	t, err := target.open(ctx)
	if err != nil {
		c.cancel()
		return nil, fmt.Errorf("client: connect to %s: %w", target, err)
	}
	go c.notifications.run()
	go c.states.run()
	l := c.newLink(t)
	c.attach(l)
	go c.run(l)
	return c, nil
}

// run maintains a connection, beginning with l, until Close.
func (c *Client) run(l *link) {
	defer close(c.ended)
	var endings sync.WaitGroup
	defer endings.Wait()
	delay := firstDelay
	for l != nil {
		began := time.Now()
		select {
		case <-l.conn.Stopping():
		case <-c.ctx.Done():
			l.conn.End()
		}
		c.drop(l)
		endings.Go(l.wait)
		if !*c.opts.reconnect {
			<-c.ctx.Done()
			return
		}
		if l.receivedAny.Load() || time.Since(began) >= lastDelay {
			delay = firstDelay
		}
		l = c.reopen(&delay)
	}
}

// reopen tries to connect until it succeeds; nil means that the Client was closed.
func (c *Client) reopen(delay *time.Duration) *link {
	c.mu.Lock()
	c.setState(Reconnecting)
	c.mu.Unlock()
	for {
		timer := time.NewTimer(*delay - rand.N(*delay/4+1))
		select {
		case <-timer.C:
		case <-c.ctx.Done():
			timer.Stop()
			return nil
		}
		*delay = min(2**delay, lastDelay)
		ctx, cancel := context.WithTimeout(c.ctx, attempt)
		t, err := c.target.open(ctx)
		cancel()
		if err == nil {
			l := c.newLink(t)
			c.attach(l)
			return l
		}
		c.opts.logger.Debug("no connection yet", "target", c.target.String(), "err", err)
		c.mu.Lock()
		if c.state != Closed {
			c.cause = err
		}
		c.mu.Unlock()
	}
}

// A Target is the server that a Client connects to: a [Socket], a [Command], an [Opener] or an
// existing connection ([OverTransport]).
type Target interface {
	fmt.Stringer
	// open opens a connection; ctx bounds only the opening.
	open(ctx context.Context) (server.Transport, error)
	properties() properties
}

type properties struct {
	framing   frame.Framing // the default
	reconnect bool          // the default
	once      bool          // cannot be opened a second time
}

// A Socket is the path of a Unix socket.
type Socket string

func (s Socket) String() string { return "socket " + string(s) }

func (s Socket) properties() properties { return properties{framing: frame.NDJSON, reconnect: true} }

func (s Socket) open(ctx context.Context) (server.Transport, error) {
	conn, err := new(net.Dialer).DialContext(ctx, "unix", string(s))
	if err != nil {
		return nil, err // the error names the socket
	}
	return socket.ReceivingFiles(conn), nil
}

// An Opener opens connections of any other kind; ctx bounds only the opening.
type Opener func(ctx context.Context) (server.Transport, error)

func (o Opener) String() string { return "opener" }

func (o Opener) properties() properties { return properties{framing: frame.NDJSON, reconnect: true} }

func (o Opener) open(ctx context.Context) (server.Transport, error) { return o(ctx) }

// OverTransport returns a Target for an existing connection, such as one end of a [server.Pipe].
// The Client closes it. It is for one Dial and cannot be reconnected.
func OverTransport(t server.Transport, f frame.Framing) Target { return &existing{t: t, framing: f} }

type existing struct {
	t       server.Transport
	framing frame.Framing
	mu      sync.Mutex
	taken   bool
}

func (e *existing) String() string { return "a transport that was there" }

func (e *existing) properties() properties { return properties{framing: e.framing, once: true} }

func (e *existing) open(context.Context) (server.Transport, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.taken {
		return nil, errors.New("the transport is in use already")
	}
	e.taken = true
	return e.t, nil
}
