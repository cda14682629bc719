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
)

// Options select events. The zero value means all events from now on.
type Options struct {
	// Kinds are the kinds to receive; empty: all. Kinds that the server does not have are ignored.
	Kinds []string
	// Session, if not empty, selects the events of this session, such as 12, or of this turn, such as
	// 12.3, by its number or its uuid.
	Session string
	// Since is a seq: the server first sends the later events of its log. 0 means the whole log,
	// nil none of it.
	Since *int64
	// Heartbeats requests heartbeats too, as events of the kind "heartbeat".
	Heartbeats bool
}

// An Event is something that happened in the server.
type Event struct {
	// Seq is the event's number in the server's log. Numbers only rise, and none comes twice.
	// Events outside the log have 0: they show a current state, such as an open question, and
	// are sent again after each reconnect.
	Seq  int64     `json:"seq"`
	Kind string    `json:"kind"`
	Time time.Time `json:"time"` // zero for a heartbeat

	// Session is the number of the event's session, Turn that of its turn, such as 12.3, and TurnUUID
	// the turn's uuid. They are 0 and "" for an event of none.
	Session  int64  `json:"session,omitempty"`
	Turn     string `json:"turn,omitempty"`
	TurnUUID string `json:"turn_uuid,omitempty"`

	Data json.RawMessage `json:"data"` // nil for a heartbeat
}

// KindLogDamaged is the kind of the event that reports a gap: the server lost the events between
// from_seq and to_seq of its data because its database is damaged.
const KindLogDamaged = "log.damaged"

const heartbeat = "heartbeat"

// A Subscription receives events. After its connection was lost and opened again, it continues
// after the last event received.
type Subscription struct {
	*client.Subscription
	opts   Options
	handle func(Event)

	delivered atomic.Int64

	mu       sync.Mutex // guards the fields below
	id       string     // of the subscription on the current connection
	begins   int64      // the seq after which the events of the first connection begin
	received int64      // the last seq queued or known; -1: unknown
}

// Subscribe calls handle for each event that o selects, in the goroutine of all handlers
// ([client.Client.On]). It returns when the server has accepted, within the default timeout of
// calls. A Client may have any number of subscriptions.
func Subscribe(ctx context.Context, c *client.Client, o Options, handle func(Event)) (*Subscription, error) {
	s := &Subscription{opts: o, handle: handle, received: -1}
	if o.Since != nil {
		s.received = *o.Since
		s.delivered.Store(*o.Since)
	}
	var err error
	s.Subscription, err = c.Subscribe(ctx, client.Stream{
		Begin: "event.subscribe", Params: s.params, Began: s.began, Take: s.take,
		End: "event.unsubscribe", EndParams: s.endParams,
		Final: func(e *client.Error) bool { return e.Kind() == "not_found" },
	})
	if err != nil {
		return nil, err
	}
	return s, nil
}

// Seq returns the seq of the last event that handle has finished, or Since; 0 if there is none.
// A program can store it and continue from there next time.
func (s *Subscription) Seq() int64 { return s.delivered.Load() }

// Begins returns the seq after which the events begin.
func (s *Subscription) Begins() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.begins
}

// params requests the missing and the future events.
func (s *Subscription) params() any {
	s.mu.Lock()
	defer s.mu.Unlock()
	params := struct {
		Kinds   []string `json:"kinds,omitempty"`
		Session string   `json:"session,omitempty"`
		Since   *int64   `json:"since,omitempty"`
	}{s.opts.Kinds, s.opts.Session, nil}
	if since := s.received; since >= 0 {
		params.Since = &since
	}
	return params
}

func (s *Subscription) began(result json.RawMessage) {
	var r struct {
		ID  string `json:"subscription_id"`
		Seq int64  `json:"seq"` // the events begin after it
	}
	json.Unmarshal(result, &r) // missing members are not needed
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.id == "" {
		s.begins = r.Seq
	}
	s.id, s.received = r.ID, max(s.received, r.Seq)
}

func (s *Subscription) endParams() any {
	s.mu.Lock()
	defer s.mu.Unlock()
	return map[string]string{"subscription_id": s.id}
}

// take queues an event for the handler.
func (s *Subscription) take(method string, params json.RawMessage, queue func(func()) bool) {
	if method != "event" && (method != heartbeat || !s.opts.Heartbeats) {
		return
	}
	var e struct {
		SubscriptionID string `json:"subscription_id"`
		Event
	}
	if json.Unmarshal(params, &e) != nil {
		return
	}
	if method == heartbeat {
		e.Event = Event{Kind: heartbeat}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if e.SubscriptionID != s.id || e.Seq > 0 && e.Seq <= s.received {
		return
	}
	if queue(func() { s.deliver(e.Event) }) && e.Seq > 0 {
		s.received = e.Seq
	}
}

// deliver passes an event to the handler.
func (s *Subscription) deliver(e Event) {
	s.handle(e)
	if e.Seq > 0 {
		s.delivered.Store(e.Seq)
	}
}
