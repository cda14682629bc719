package client

import (
	"encoding/json"
	"time"
)

// An Event is something that happened in the server.
type Event struct {
	Type      string
	Timestamp time.Time // zero for a heartbeat, or if it could not be parsed
	// Seq is the event's number in the server's log. Numbers only rise, and none comes twice.
	// Events outside the log have 0: they show a current state, such as an open question, and
	// are sent again after each reconnect.
	Seq  int64
	Data json.RawMessage // nil for a heartbeat
}

// TypeLagged is the type of the event that reports skipped events, because the Client did not
// read fast enough. Only deltas between from_seq and to_seq of its data are missing.
const TypeLagged = "lagged"

// TypeLogDamaged is the type of the event that reports a gap: the server lost the events between
// from_seq and to_seq of its data because its database is damaged.
const TypeLogDamaged = "log_damaged"

const typeHeartbeat = "heartbeat"

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
