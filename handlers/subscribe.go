package handlers

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/eventlog"
	"github.com/duet-rpc/duet-rpc/internal/hub"
	"github.com/duet-rpc/duet-rpc/internal/protocol"
	"github.com/duet-rpc/duet-rpc/server"
)

// heartbeatEvery is the silence after which a subscriber gets a heartbeat (HumanLayer).
const heartbeatEvery = 30 * time.Second

// registerEvents registers event.subscribe and event.unsubscribe (docs/protocol.md, "Events").
func registerEvents(reg *server.Registry, d Domain, w *watching) *subscriptions {
	s := &subscriptions{watching: w, unwatched: d.Unwatched, open: make(map[subscriptionKey]*subscription), count: make(map[*server.Conn]int)}
	handle(reg, d, nativeFamily, "event.subscribe", s.subscribe,
		server.Doc("Sends events to this connection, as notifications event. With since, it first replays the stored events after that seq. "+
			"Pending approvals come first. After 30 s without an event, the notification heartbeat is sent. The connection still serves requests. "+
			"A connection has at most 64 subscriptions."))
	handle(reg, d, nativeFamily, "event.unsubscribe", s.unsubscribe, server.Doc("Ends a subscription of this connection."))
	return s
}

// subscriptions stores the subscriptions of all connections.
type subscriptions struct {
	watching  *watching
	unwatched *Unwatched

	mu    sync.Mutex // guards the fields below
	open  map[subscriptionKey]*subscription
	count map[*server.Conn]int // number of subscriptions
}

// A subscriptionKey identifies a subscription: ids are unique within a connection.
type subscriptionKey struct {
	conn *server.Conn
	id   string
}

// subscriptionsAtMost limits the subscriptions of a connection. Each holds goroutines, and a page of
// events while its peer does not read.
const subscriptionsAtMost = 64

var errTooManySubscriptions = domain.Errorf(domain.KindTooManySubscriptions,
	"this connection has %d subscriptions, and no more are possible; end some with event.unsubscribe (Unsubscribe), or ask for more events "+
		"with one", subscriptionsAtMost)

// add stores a subscription, unless its connection has too many.
func (s *subscriptions) add(sub *subscription) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.count[sub.conn] >= subscriptionsAtMost {
		return errTooManySubscriptions
	}
	key := subscriptionKey{sub.conn, sub.id}
	if s.open[key] != nil {
		return server.InvalidParam(server.ParamError{
			Param: "subscription_id", Expected: "an id that no subscription of this connection has", Received: sub.id,
		})
	}
	s.open[key] = sub
	s.count[sub.conn]++
	return nil
}

// flushed waits until all subscribers have all events so far, or ctx ends. It waits for all at once:
// a subscriber that does not read takes no time from the others.
func (s *subscriptions) flushed(ctx context.Context) {
	s.mu.Lock()
	open := slices.Collect(maps.Values(s.open))
	s.mu.Unlock()
	var all sync.WaitGroup
	for _, sub := range open {
		if feed := sub.feed.Load(); feed != nil {
			all.Go(func() { _ = feed.CatchUp(ctx) })
		}
	}
	all.Wait()
}

// forget removes and returns a subscription of a connection, or returns nil.
func (s *subscriptions) forget(id string, conn *server.Conn) *subscription {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := subscriptionKey{conn, id}
	sub := s.open[key]
	if sub == nil {
		return nil
	}
	delete(s.open, key)
	if s.count[conn]--; s.count[conn] == 0 {
		delete(s.count, conn)
	}
	return sub
}

// longestSubscriptionID limits a client's own id, in bytes.
const longestSubscriptionID = 100

// mostKinds limits the kinds that a request names, and longestKind the name of one, in bytes: the reply
// repeats those that are unknown.
const (
	mostKinds   = 100
	longestKind = 100
)

func checkSubscribe(p protocol.SubscribeParams) error {
	if n := len(p.Kinds); n > mostKinds {
		return server.InvalidParam(server.ParamError{
			Param: "kinds", Expected: fmt.Sprintf("at most %d kinds", mostKinds), Received: strconv.Itoa(n),
		})
	}
	for i, kind := range p.Kinds {
		if len(kind) > longestKind {
			return server.InvalidParam(server.ParamError{
				Param: fmt.Sprintf("kinds[%d]", i), Expected: fmt.Sprintf("at most %d bytes", longestKind), Received: strconv.Itoa(len(kind)),
			})
		}
	}
	if p.Since != nil && *p.Since < 0 {
		return server.InvalidParam(server.ParamError{Param: "since", Expected: "integer from 0 on", Received: "a negative one"})
	}
	if len(p.ID) > longestSubscriptionID {
		return server.InvalidParam(server.ParamError{
			Param: "subscription_id", Expected: fmt.Sprintf("at most %d bytes", longestSubscriptionID), Received: strconv.Itoa(len(p.ID)),
		})
	}
	if d := p.DeltaInterval; d != nil && (protocol.Milliseconds(*d) < eventlog.ShortestPace || protocol.Milliseconds(*d) > eventlog.LongestPace) {
		return server.InvalidParam(server.ParamError{
			Param: "delta_interval_ms", Received: strconv.FormatInt(*d, 10),
			Expected: fmt.Sprintf("integer from %d to %d", eventlog.ShortestPace.Milliseconds(), eventlog.LongestPace.Milliseconds()),
		})
	}
	return nil
}

func subscribingOf(p protocol.SubscribeParams, kinds []domain.EventKind) eventlog.Subscribing {
	f := eventlog.Subscribing{Kinds: kinds, Turn: string(p.Session), Since: -1}
	if p.Since != nil {
		f.Since = *p.Since
	}
	if p.DeltaInterval != nil {
		f.Pace = protocol.Milliseconds(*p.DeltaInterval)
	}
	return f
}

func (s *subscriptions) subscribe(ctx context.Context, h *hub.Hub, p protocol.SubscribeParams) (protocol.SubscribeResult, error) {
	kinds, unknown := protocol.Kinds(p.Kinds)
	if p.Form != nil {
		return s.begin(ctx, h, p, p.Only, p.Form)
	}
	r, err := s.begin(ctx, h, p, kinds, protocol.Native)
	r.Unknown = unknown
	return r, err
}

// begin starts a subscription to kinds of events (nil: all), which come in a form.
func (s *subscriptions) begin(
	ctx context.Context, h *hub.Hub, p protocol.SubscribeParams, kinds []domain.EventKind, form *protocol.EventForm,
) (protocol.SubscribeResult, error) {
	conn := server.ConnFrom(ctx)
	sub := newSubscription(form, conn.Send)
	sub.id = cmp.Or(p.ID, sub.id)
	sub.room = conn.MaxMessage()
	if kinds == nil { // a client that names the event gets it
		sub.known = func(n eventlog.Notice) bool { return s.watching.covers(conn, n) }
	}
	alive, cancel := context.WithCancel(context.WithoutCancel(ctx))
	sub.conn, sub.cancel = conn, cancel
	if err := s.add(sub); err != nil {
		cancel()
		return protocol.SubscribeResult{}, err
	}
	feed, err := h.Events().Subscribe(alive, subscribingOf(p, kinds), sub.deliver)
	if err != nil {
		s.forget(sub.id, conn)
		cancel()
		return protocol.SubscribeResult{}, err
	}
	sub.feed.Store(feed)
	server.AfterReply(ctx, func() {
		started := conn.Go(func(connected context.Context) {
			defer context.AfterFunc(connected, cancel)()
			s.unwatched.begin()
			defer s.unwatched.end(h)
			defer s.forget(sub.id, conn)
			defer cancel()
			feed.Start()
			sub.live(alive, feed.Done())
			feed.Close()
		})
		if !started {
			s.forget(sub.id, conn)
			cancel()
		}
	})
	result := protocol.SubscribeResult{SubscriptionID: sub.id, Seq: feed.From()}
	if p.Notices {
		result.Notice = s.unwatched.Notice()
	}
	return result, nil
}

func (s *subscriptions) unsubscribe(ctx context.Context, _ *hub.Hub, p protocol.UnsubscribeParams) (protocol.Success, error) {
	sub := s.forget(p.SubscriptionID, server.ConnFrom(ctx))
	if sub == nil {
		return protocol.Success{}, domain.Errorf(domain.KindSubscriptionNotFound,
			"this connection has no such subscription; it has ended already, or was never made here")
	}
	sub.cancel()
	return protocol.Success{Success: true}, nil
}

// A subscription sends events to one subscriber, in its form.
type subscription struct {
	id    string
	form  *protocol.EventForm
	room  int // of a message, in bytes; 0: no limit
	send  func(ctx context.Context, messages ...any) error
	held  []eventlog.Notice          // sent together with the next one
	known func(eventlog.Notice) bool // the connection gets it otherwise; may be nil

	conn   *server.Conn
	cancel context.CancelFunc
	feed   atomic.Pointer[eventlog.Subscription] // source of the events; nil at first
	last   atomic.Int64                          // time of the last message, in nanoseconds since began
	began  time.Time
}

func newSubscription(form *protocol.EventForm, send func(context.Context, ...any) error) *subscription {
	return &subscription{id: "sub_" + uuid.NewString(), form: form, send: send, began: time.Now()}
}

// deliver sends an event. It waits for the peer until ctx or the connection ends.
func (s *subscription) deliver(ctx context.Context, n eventlog.Notice) error {
	if s.known != nil && s.known(n) {
		return nil
	}
	if s.held = append(s.held, n); n.More {
		return nil
	}
	err := s.sendHeld(ctx)
	s.held = s.held[:0]
	s.touch()
	return err
}

// sendHeld sends the held events together, or one after the other if they are too long together.
func (s *subscription) sendHeld(ctx context.Context) error {
	if len(s.held) > 1 {
		messages := make([]any, len(s.held))
		for i, n := range s.held {
			messages[i] = s.form.Event(s.id, n.Event, s.form.Data(n.Event))
		}
		if err := s.send(ctx, messages...); !errors.Is(err, server.ErrTooLong) {
			return err
		}
	}
	for _, n := range s.held {
		if err := sendEvent(ctx, s.send, s.form, s.id, s.room, n.Event); err != nil {
			return err
		}
	}
	return nil
}

// sendEvent sends an event. It cuts the texts if the message is too long.
func sendEvent(ctx context.Context, send func(context.Context, ...any) error, form *protocol.EventForm, subscription string, room int, e domain.Event) error {
	data := form.Data(e)
	err := send(ctx, form.Event(subscription, e, data))
	if errors.Is(err, server.ErrTooLong) {
		err = send(ctx, form.Event(subscription, e, protocol.FitRaw(data, room-1024)))
	}
	return err
}

func (s *subscription) touch() { s.last.Store(int64(time.Since(s.began))) }

// live sends heartbeats until ctx or the feed ends.
func (s *subscription) live(ctx context.Context, ended <-chan struct{}) {
	for {
		quiet := time.Since(s.began) - time.Duration(s.last.Load())
		if quiet >= heartbeatEvery {
			if s.send(ctx, s.form.Heartbeat(s.id)) != nil {
				return
			}
			s.touch()
			continue
		}
		select {
		case <-time.After(heartbeatEvery - quiet):
		case <-ctx.Done():
			return
		case <-ended:
			return
		}
	}
}
