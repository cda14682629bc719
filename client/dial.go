package client

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

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
