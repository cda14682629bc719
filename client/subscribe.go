package client

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sourcegraph/jsonrpc2"

	"github.com/duet-rpc/duet-rpc/frame"
)

// SubscribeOptions select events. The zero value means all events from now on.
type SubscribeOptions struct {
	// Types are the types to receive; empty: all.
	Types []string
	// Session, if not empty, selects the events of this session; every id of the run works.
	Session string
	// Since is a seq: the server first sends the later events of its log. 0 means the whole log,
	// nil none of it.
	Since *int64
	// Heartbeats requests heartbeats too, as events of the type "heartbeat".
	Heartbeats bool
}

// straggling is how long a subscription that restarts on the same connection of lines waits for
// the last event of the old one.
const straggling = 50 * time.Millisecond

// unsubscribeWithin is the timeout of an unsubscribe request.
const unsubscribeWithin = 5 * time.Second

// A Subscription receives events. After its connection was lost and opened again, it continues
// after the last event received.
type Subscription struct {
	c      *Client
	opts   SubscribeOptions
	handle func(Event)
	ctx    context.Context // ends with Close, and the Client's
	cancel context.CancelFunc
	ready  chan error    // takes the first outcome
	resync chan struct{} // takes one: events were missed, and the queue has room again
	ended  chan struct{}
	err    error // valid once ended is closed

	delivered atomic.Int64

	mu       sync.Mutex // guards the fields below
	link     *link      // the current link; nil: none
	received int64      // the last seq queued or known; -1: unknown
	missing  bool       // the queue was full: no event is taken until all are fetched again
	// On a connection of lines, one event of an ended subscription may still arrive after the
	// next one has begun, and looks like one of its own.
	renewed bool  // such an event may arrive
	before  int64 // received, before the last event
	early   int64 // came too early, must not come again; 0: none
}

// Subscribe calls handle for each event that o selects, in the goroutine of all handlers
// ([Client.On]). It returns when the server has accepted, within the default timeout of calls.
// It works with both dialects: notifications with LSP framing, and results without an id with
// lines. Those carry no subscription id, so a connection of lines can have only one subscription
// ([ErrOneSubscription]).
//
// After a reconnect, and when a slow handle left no room for events, the Client subscribes again
// since the last event that it has: none is lost and none comes twice. (On a connection of
// lines, one event may come early in the latter case.) A subscription without Since that has had
// no event yet knows no position, unless the server's reply contains its seq. Without that seq
// it misses the events during the loss.
func (c *Client) Subscribe(ctx context.Context, o SubscribeOptions, handle func(Event)) (*Subscription, error) {
	s := &Subscription{
		c: c, opts: o, handle: handle, received: -1,
		ready: make(chan error, 1), resync: make(chan struct{}, 1), ended: make(chan struct{}),
	}
	if o.Since != nil {
		s.received = *o.Since
		s.delivered.Store(*o.Since)
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
		return nil, c.failure(ctx, "Subscribe", c.opts.timeout, err)
	}
	return s, nil
}

// oneSubscription reports whether events are results without an id, which carry no subscription
// id: our server sends them so on a connection of lines.
func (c *Client) oneSubscription() bool { return c.opts.framing == frame.NDJSON }

// admit starts a subscription.
func (c *Client) admit(s *Subscription) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.state == Closed {
		return c.failure(s.ctx, "Subscribe", 0, ErrClosed)
	}
	if c.oneSubscription() {
		if c.lineEvents != nil {
			return ErrOneSubscription
		}
		c.lineEvents = s
	}
	c.subs.Go(s.keep)
	return nil
}

// Close ends the subscription, and waits until the server has confirmed, but no longer than 5 s.
// handle is not called again.
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

// Seq returns the seq of the last event that handle has finished, or Since; 0 if there is none.
// A program can store it and continue from there next time.
func (s *Subscription) Seq() int64 { return s.delivered.Load() }

// keep runs the subscription from its beginning to its end.
func (s *Subscription) keep() {
	s.err = s.run()
	s.cancel()
	s.c.mu.Lock()
	if s.c.lineEvents == s {
		s.c.lineEvents = nil
	}
	s.c.mu.Unlock()
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

// run subscribes on one connection after the other.
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
		id, err := s.subscribe(l)
		switch {
		case err == nil:
			delay, agreed = firstDelay, true
			s.settle(nil)
			renew := false
			select {
			case <-s.ctx.Done():
			case <-l.lost:
			case <-s.resync:
				renew = true
			}
			s.leave(l, id, renew)
		case s.ctx.Err() != nil:
		case errors.Is(err, ErrDisconnected):
			s.detach(l, "")
		case !agreed && resent < mostResent && s.c.isToResend(err):
			resent++
		case !agreed || final(err):
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

// final reports whether the server would give the same error again.
func final(err error) bool {
	e, ok := errors.AsType[*Error](err)
	if !ok {
		return false
	}
	switch e.Code {
	case jsonrpc2.CodeInvalidParams, jsonrpc2.CodeMethodNotFound, jsonrpc2.CodeInvalidRequest:
		return true
	}
	return e.Kind() == "session_not_found"
}

// subscribe requests the missing and the future events. It waits for the answer until the
// connection ends, because a second request would bring everything twice. After Close it waits a
// little, because an accepted subscription must be ended.
func (s *Subscription) subscribe(l *link) (id string, err error) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	defer context.AfterFunc(s.ctx, func() { time.AfterFunc(unsubscribeWithin, cancel) })()
	params := struct {
		Types   []string `json:"event_types,omitempty"`
		Session string   `json:"session_id,omitempty"`
		Since   *int64   `json:"since,omitempty"`
	}{s.opts.Types, s.opts.Session, nil}
	s.mu.Lock()
	if since := s.received; since >= 0 {
		params.Since = &since
	}
	s.mu.Unlock()
	raw, err := s.c.encode("Subscribe", params)
	if err != nil {
		return "", err
	}
	_, _, err = l.call(ctx, s.c.lastID.Add(1), "Subscribe", raw, func(result json.RawMessage) {
		var r struct {
			ID  string `json:"subscription_id"`
			Seq *int64 `json:"seq"` // seq of the first event, from servers that send it
		}
		json.Unmarshal(result, &r) // missing members are not needed
		id = r.ID
		s.attach(l, id, r.Seq)
	})
	return id, err
}

// attach assigns the events of l to s, before the first one is read.
func (s *Subscription) attach(l *link, id string, begins *int64) {
	l.mu.Lock()
	if l.byID != nil {
		l.byID[id] = s
	}
	l.mu.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.link, s.missing = l, false
	if s.received < 0 && begins != nil {
		s.received = *begins
	}
}

// detach stops taking events from l.
func (s *Subscription) detach(l *link, id string) {
	s.mu.Lock()
	s.link, s.renewed = nil, false
	s.mu.Unlock()
	l.mu.Lock()
	delete(l.byID, id)
	l.mu.Unlock()
}

// leave ends the subscription on l; renew reports that another one follows.
func (s *Subscription) leave(l *link, id string, renew bool) {
	s.detach(l, id)
	select {
	case <-l.lost:
		return
	default:
	}
	ctx, cancel := context.WithTimeout(context.Background(), unsubscribeWithin)
	defer cancel()
	stop := context.AfterFunc(s.c.ctx, cancel) // the connection ends anyway
	defer stop()
	params, _ := json.Marshal(map[string]string{"subscription_id": id})
	if _, _, err := l.call(ctx, s.c.lastID.Add(1), "Unsubscribe", params, nil); err != nil {
		s.c.opts.logger.Debug("a subscription did not end in order", "err", err)
	}
	if !renew || !s.c.oneSubscription() {
		return
	}
	s.mu.Lock()
	s.renewed = true
	s.mu.Unlock()
	select {
	case <-time.After(straggling):
	case <-l.lost:
	case <-s.ctx.Done():
	}
}

// take queues an event of l for the handler.
func (s *Subscription) take(l *link, e Event, size int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.link != l || s.missing || s.ctx.Err() != nil || e.Seq > 0 && !s.isNew(e.Seq) {
		return
	}
	if !s.c.notifications.put(size, func() { s.deliver(e) }, s.resync) {
		s.missing = true
		if s.received < 0 && e.Seq > 0 {
			s.received = e.Seq - 1
		}
		return
	}
	if e.Seq > 0 {
		s.before, s.received = s.received, e.Seq
	}
}

// isNew reports whether the event with that seq is new. Within a subscription numbers only rise.
// A seq between the last two events shows that the last one belonged to the old subscription,
// and came early.
func (s *Subscription) isNew(seq int64) bool {
	if s.renewed && s.before < seq && seq < s.received {
		s.early, s.received, s.renewed = s.received, s.before, false
	}
	if seq == s.early {
		s.early = 0
		s.received = seq
		return false
	}
	return seq > s.received
}

// deliver passes an event to the handler.
func (s *Subscription) deliver(e Event) {
	if s.ctx.Err() != nil {
		return
	}
	s.handle(e)
	if e.Seq > 0 {
		s.delivered.Store(e.Seq)
	}
}
