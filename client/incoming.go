package client

import (
	"bytes"
	"context"
	"encoding/json"
	"time"

	"github.com/duet-rpc/duet-rpc/frame"
	"github.com/duet-rpc/duet-rpc/server"
)

func (c *Client) newLink(t server.Transport) *link {
	l := &link{c: c, t: &observed{Transport: t}, lost: make(chan struct{}), byID: make(map[string]*Subscription)}
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

// response handles a message without a method: the response to a request or, on a connection of
// lines, an event, which is a result without an id.
func (l *link) response(_ *server.Conn, m *frame.Message) {
	logger := l.c.opts.logger
	switch hasID := m.ID != nil && string(m.ID) != "null"; {
	case string(m.JSONRPC) != `"2.0"`:
		logger.Debug("message ignored: it is not JSON-RPC 2.0")
	case hasID && !l.calls.Deliver(m):
		logger.Debug("response ignored: nobody waits for it")
	case hasID:
	case m.Result != nil:
		l.receivedAny.Store(true)
		l.event("", m.Result)
	default:
		l.receivedAny.Store(true)
		logger.Warn("the server refused a message of ours", "error", errorFrom(m.Error))
	}
}

// notification queues a notification for its handlers, and handles it if it is an event.
func (l *link) notification(_ *server.Conn, method string, params json.RawMessage) {
	l.receivedAny.Store(true)
	params = bytes.Clone(params)
	if method == "event" || method == "heartbeat" {
		l.event(method, params)
	}
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

// wireEvent is an event or a heartbeat in either dialect.
type wireEvent struct {
	SubscriptionID string `json:"subscription_id"`
	Seq            int64  `json:"seq"`  // LSP
	Type           string `json:"type"` // of a heartbeat
	Event          *struct {
		Type      string          `json:"type"`
		Timestamp string          `json:"timestamp"`
		Seq       int64           `json:"seq"` // lines
		Data      json.RawMessage `json:"data"`
	} `json:"event"`
}

// event parses a possible event, in the goroutine that reads: the method is event or heartbeat,
// or empty for a result without an id.
func (l *link) event(method string, raw json.RawMessage) {
	var w wireEvent
	if err := json.Unmarshal(raw, &w); err != nil {
		l.c.opts.logger.Debug("not an event", "err", err)
		return
	}
	s := l.subscription(w.SubscriptionID)
	switch {
	case s == nil:
	case w.Event != nil:
		at, _ := time.Parse(time.RFC3339Nano, w.Event.Timestamp)
		s.take(l, Event{w.Event.Type, at, max(w.Seq, w.Event.Seq), w.Event.Data}, len(raw))
	case (method == typeHeartbeat || w.Type == typeHeartbeat) && s.opts.Heartbeats:
		s.take(l, Event{Type: typeHeartbeat}, len(raw))
	}
}

// subscription returns the subscription with that id.
func (l *link) subscription(id string) *Subscription {
	if l.c.oneSubscription() {
		l.c.mu.Lock()
		defer l.c.mu.Unlock()
		return l.c.lineEvents
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.byID[id]
}
