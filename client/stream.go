package client

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/sourcegraph/jsonrpc2"
)

// A Stream is a sequence of messages that a server sends after a request, such as the events of a
// log. [Client.Subscribe] requests it on one connection after the other.
type Stream struct {
	// Begin is the method of the request that begins the stream on a connection, and Params
	// returns its parameters.
	Begin  string
	Params func() any
	// Began gets the result of that request before any later message, in the goroutine that reads.
	// It must not block.
	Began func(result json.RawMessage)
	// Take gets each later notification of the connection in the goroutine that reads. It must not
	// block. For a message of the stream it calls queue with its handler, which runs in the goroutine
	// of all handlers ([Client.On]). queue reports whether there was room. If not, Take is not called
	// again before the stream begins again. params are borrowed until Take returns.
	Take func(method string, params json.RawMessage, queue func(handle func()) bool)
	// End is the method of the request that ends the stream on a connection, and EndParams returns
	// its parameters.
	End       string
	EndParams func() any
	// Final, if set, reports whether the server would give the same error again. The errors of
	// JSON-RPC about a wrong request are final in any case.
	Final func(*Error) bool
}

// unsubscribeWithin is the timeout of the request that ends a stream.
const unsubscribeWithin = 5 * time.Second

// A Subscription receives the messages of a [Stream]. After its connection was lost and opened
// again, it begins the stream again.
type Subscription struct {
	c      *Client
	stream Stream
	ctx    context.Context // ends with Close, and the Client's
	cancel context.CancelFunc
	ready  chan error    // takes the first outcome
	resync chan struct{} // takes one: messages were missed, and the queue has room again
	ended  chan struct{}
	err    error // valid once ended is closed

	mu      sync.Mutex // guards the fields below
	link    *link      // the current link; nil: none
	missing bool       // the queue was full: no message is taken until the stream begins again
}

// Subscribe begins a stream, and begins it again after each reconnect, and when a slow handler left
// no room for a message. It returns when the server has accepted, within the default timeout of
// calls.
func (c *Client) Subscribe(ctx context.Context, stream Stream) (*Subscription, error) {
	s := &Subscription{
		c: c, stream: stream,
		ready: make(chan error, 1), resync: make(chan struct{}, 1), ended: make(chan struct{}),
	}
	s.ctx, s.cancel = context.WithCancel(c.ctx)
	if err := c.admit(s); err != nil {
		s.cancel()
		return nil, err
	}
	ctx, done := limit(ctx, c.opts.timeout)
	defer done()
	var err error
	select {
	case err = <-s.ready:
	case <-ctx.Done():
		err = ctx.Err()
	}
	if err != nil {
		s.cancel()
		return nil, c.failure(ctx, stream.Begin, c.opts.timeout, err)
	}
	return s, nil
}

// admit starts a subscription.
func (c *Client) admit(s *Subscription) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.state == Closed {
		return c.failure(s.ctx, s.stream.Begin, 0, ErrClosed)
	}
	c.subs.Go(s.keep)
	return nil
}

// Close ends the subscription, and waits until the server has confirmed, but no longer than 5 s.
// No handler of it is called again.
func (s *Subscription) Close() error {
	s.cancel()
	<-s.ended
	return nil
}

// Done returns a channel that is closed when the subscription has ended; see Err.
func (s *Subscription) Done() <-chan struct{} { return s.ended }

// Err returns the reason why the subscription has ended. It is nil if it was closed, or is still
// open; [ErrClosed] after the Client's end; [ErrDisconnected] without reconnecting; an [*Error]
// if the server refuses it.
func (s *Subscription) Err() error {
	select {
	case <-s.ended:
		return s.err
	default:
		return nil
	}
}

// keep runs the subscription from its beginning to its end.
func (s *Subscription) keep() {
	s.err = s.run()
	s.cancel()
	s.settle(s.err)
	close(s.ended)
}

// settle reports the first outcome to Subscribe.
func (s *Subscription) settle(err error) {
	select {
	case s.ready <- err:
	default:
	}
}

// run begins the stream on one connection after the other.
func (s *Subscription) run() error {
	delay := firstDelay
	agreed := false // once
	resent := 0
	for {
		l, err := s.c.connected(s.ctx, !agreed && s.c.opts.failFast)
		if s.ctx.Err() != nil {
			return s.ending()
		}
		if err != nil {
			return err
		}
		err = s.begin(l)
		switch {
		case err == nil:
			delay, agreed = firstDelay, true
			s.settle(nil)
			select {
			case <-s.ctx.Done():
			case <-l.lost:
			case <-s.resync:
			}
			s.leave(l)
		case s.ctx.Err() != nil:
		case errors.Is(err, ErrDisconnected):
			s.detach(l)
		case !agreed && resent < mostResent && s.c.isToResend(err):
			resent++
		case !agreed || s.isFinal(err):
			return err
		default:
			s.c.opts.logger.Warn("subscription not restored yet", "err", err)
			select {
			case <-s.ctx.Done():
			case <-l.lost:
			case <-time.After(delay):
			}
			delay = min(2*delay, lastDelay)
		}
		if s.ctx.Err() != nil {
			return s.ending()
		}
	}
}

// ending returns the reason why a subscription was ended.
func (s *Subscription) ending() error {
	if s.c.ctx.Err() != nil {
		return ErrClosed
	}
	return nil
}

// isFinal reports whether the server would give the same error again.
func (s *Subscription) isFinal(err error) bool {
	e, ok := errors.AsType[*Error](err)
	if !ok {
		return false
	}
	switch e.Code {
	case jsonrpc2.CodeInvalidParams, jsonrpc2.CodeMethodNotFound, jsonrpc2.CodeInvalidRequest:
		return true
	}
	return s.stream.Final != nil && s.stream.Final(e)
}

// begin requests the stream on l. It waits for the answer until the connection ends, because a
// second request would bring everything twice. After Close it waits a little, because an accepted
// subscription must be ended.
func (s *Subscription) begin(l *link) error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	defer context.AfterFunc(s.ctx, func() { time.AfterFunc(unsubscribeWithin, cancel) })()
	raw, err := s.c.encode(s.stream.Begin, s.stream.Params())
	if err != nil {
		return err
	}
	_, _, err = l.call(ctx, s.c.lastID.Add(1), s.stream.Begin, raw, func(result json.RawMessage) {
		s.stream.Began(result)
		s.attach(l)
	})
	return err
}

// attach offers the messages of l to s, before the first one is read.
func (s *Subscription) attach(l *link) {
	l.mu.Lock()
	if l.gone == nil {
		l.subs = append(slices.Clip(l.subs), s)
	}
	l.mu.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.link, s.missing = l, false
}

// detach stops taking messages from l.
func (s *Subscription) detach(l *link) {
	s.mu.Lock()
	s.link = nil
	s.mu.Unlock()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.subs = slices.DeleteFunc(slices.Clone(l.subs), func(other *Subscription) bool { return other == s })
}

// leave ends the stream on l.
func (s *Subscription) leave(l *link) {
	s.detach(l)
	select {
	case <-l.lost:
		return
	default:
	}
	ctx, cancel := context.WithTimeout(context.Background(), unsubscribeWithin)
	defer cancel()
	stop := context.AfterFunc(s.c.ctx, cancel) // the connection ends anyway
	defer stop()
	params, err := encodeJSON(s.stream.EndParams())
	if err == nil {
		_, _, err = l.call(ctx, s.c.lastID.Add(1), s.stream.End, params, nil)
	}
	if err != nil {
		s.c.opts.logger.Debug("a subscription did not end in order", "err", err)
	}
}

// offer passes a message of l to the stream.
func (s *Subscription) offer(l *link, method string, params json.RawMessage) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.link != l || s.missing || s.ctx.Err() != nil {
		return
	}
	s.stream.Take(method, params, func(handle func()) bool {
		run := func() {
			if s.ctx.Err() == nil {
				handle()
			}
		}
		s.missing = !s.c.notifications.put(len(params), run, s.resync)
		return !s.missing
	})
}

// offer passes a notification to the subscriptions.
func (l *link) offer(method string, params json.RawMessage) {
	l.mu.Lock()
	subs := l.subs
	l.mu.Unlock()
	for _, s := range subs {
		s.offer(l, method, params)
	}
}
