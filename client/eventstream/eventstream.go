// Package eventstream reads the log of events of duet-rpc with a [client.Client].
//
//	sub, err := eventstream.Subscribe(ctx, c, eventstream.Options{Since: &last}, func(e eventstream.Event) { … })
//
// After the connection was lost, and when a slow handler left no room for events, the subscription
// continues after the last event that it has: none is lost and none comes twice.
package eventstream

import (
	"context"
	"encoding/json"
	"sync"
	"sync/atomic"
	"time"

	"github.com/duet-rpc/duet-rpc/client"
	"github.com/duet-rpc/duet-rpc/frame"
)

// Options select events. The zero value means all events from now on.
type Options struct {
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

// An Event is something that happened in the server.
type Event struct {
	Type      string
	Timestamp time.Time // zero for a heartbeat, or if it could not be parsed
	// Seq is the event's number in the server's log. Numbers only rise, and none comes twice.
	// Events outside the log have 0: they show a current state, such as an open question, and
	// are sent again after each reconnect.
	Seq  int64
	Data json.RawMessage // nil for a heartbeat

	// Session is the number of the event's session, and Turn that of its turn, such as 12.3. They are 0
	// and "" for an event of none, and on a connection of lines.
	Session int64
	Turn    string
}

// TypeLagged is the type of the event that reports skipped events, because the client did not
// read fast enough. Only deltas between from_seq and to_seq of its data are missing.
const TypeLagged = "lagged"

// TypeLogDamaged is the type of the event that reports a gap: the server lost the events between
// from_seq and to_seq of its data because its database is damaged.
const TypeLogDamaged = "log_damaged"

const typeHeartbeat = "heartbeat"

// A Subscription receives events. After its connection was lost and opened again, it continues
// after the last event received.
type Subscription struct {
	*client.Subscription
	opts   Options
	handle func(Event)
	// lines: events are results without an id, which carry no subscription id. Our server sends them
	// so on a connection of lines.
	lines bool

	delivered atomic.Int64

	mu       sync.Mutex // guards the fields below
	id       string     // of the subscription on the current connection
	received int64      // the last seq queued or known; -1: unknown
	// On a connection of lines, one event of an ended subscription may still arrive after the
	// next one has begun, and looks like one of its own.
	renewed bool  // such an event may arrive
	before  int64 // received, before the last event
	early   int64 // came too early, must not come again; 0: none
}

// Subscribe calls handle for each event that o selects, in the goroutine of all handlers
// ([client.Client.On]). It returns when the server has accepted, within the default timeout of
// calls. It works with both dialects: notifications with LSP framing, and results without an id
// with lines. Those carry no subscription id, so a connection of lines can have only one
// subscription ([client.ErrOneSubscription]).
//
// On a connection of lines, one event may come early after a slow handle left no room for events. A
// subscription without Since that has had no event yet knows no position, unless the server's reply
// contains its seq. Without that seq it misses the events during the loss of a connection.
func Subscribe(ctx context.Context, c *client.Client, o Options, handle func(Event)) (*Subscription, error) {
	s := &Subscription{opts: o, handle: handle, received: -1, lines: c.Framing() == frame.NDJSON}
	if o.Since != nil {
		s.received = *o.Since
		s.delivered.Store(*o.Since)
	}
	var err error
	s.Subscription, err = c.Subscribe(ctx, client.Stream{
		Begin: "Subscribe", Params: s.params, Began: s.began, Take: s.take,
		End: "Unsubscribe", EndParams: s.endParams,
		Final: func(e *client.Error) bool { return e.Kind() == "session_not_found" },
		Alone: s.lines,
	})
	if err != nil {
		return nil, err
	}
	return s, nil
}

// Seq returns the seq of the last event that handle has finished, or Since; 0 if there is none.
// A program can store it and continue from there next time.
func (s *Subscription) Seq() int64 { return s.delivered.Load() }

// params requests the missing and the future events.
func (s *Subscription) params(again bool) any {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.renewed = again && s.lines
	params := struct {
		Types   []string `json:"event_types,omitempty"`
		Session string   `json:"session_id,omitempty"`
		Since   *int64   `json:"since,omitempty"`
	}{s.opts.Types, s.opts.Session, nil}
	if since := s.received; since >= 0 {
		params.Since = &since
	}
	return params
}

func (s *Subscription) began(result json.RawMessage) {
	var r struct {
		ID  string `json:"subscription_id"`
		Seq *int64 `json:"seq"` // seq of the first event, from servers that send it
	}
	json.Unmarshal(result, &r) // missing members are not needed
	s.mu.Lock()
	defer s.mu.Unlock()
	s.id = r.ID
	if s.received < 0 && r.Seq != nil {
		s.received = *r.Seq
	}
}

func (s *Subscription) endParams() any {
	s.mu.Lock()
	defer s.mu.Unlock()
	return map[string]string{"subscription_id": s.id}
}

// wireEvent is an event or a heartbeat in either dialect.
type wireEvent struct {
	SubscriptionID string `json:"subscription_id"`
	Seq            int64  `json:"seq"` // LSP, as Session and Turn
	Session        int64  `json:"session"`
	Turn           string `json:"turn"`
	Type           string `json:"type"` // of a heartbeat
	Event          *struct {
		Type      string          `json:"type"`
		Timestamp string          `json:"timestamp"`
		Seq       int64           `json:"seq"` // lines
		Data      json.RawMessage `json:"data"`
	} `json:"event"`
}

// take queues an event for the handler.
func (s *Subscription) take(method string, payload json.RawMessage, queue func(func()) bool) {
	if method != "event" && method != typeHeartbeat && method != "" {
		return
	}
	var w wireEvent
	if json.Unmarshal(payload, &w) != nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.lines && w.SubscriptionID != s.id {
		return
	}
	var e Event
	switch {
	case w.Event != nil:
		at, _ := time.Parse(time.RFC3339Nano, w.Event.Timestamp)
		e = Event{w.Event.Type, at, max(w.Seq, w.Event.Seq), w.Event.Data, w.Session, w.Turn}
	case (method == typeHeartbeat || w.Type == typeHeartbeat) && s.opts.Heartbeats:
		e = Event{Type: typeHeartbeat}
	default:
		return
	}
	switch {
	case e.Seq > 0 && !s.isNew(e.Seq):
	case !queue(func() { s.deliver(e) }):
		if s.received < 0 && e.Seq > 0 {
			s.received = e.Seq - 1
		}
	case e.Seq > 0:
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
	s.handle(e)
	if e.Seq > 0 {
		s.delivered.Store(e.Seq)
	}
}
