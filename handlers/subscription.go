package handlers

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"github.com/duet-rpc/duet-rpc/internal/dialect"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/eventlog"
	"github.com/duet-rpc/duet-rpc/server"
)

// A subscription writes one subscriber's events in the dialect of its
// connection.
type subscription struct {
	id      string
	dialect *dialect.Client
	room    int // of a message, in bytes; 0: no limit
	send    func(ctx context.Context, messages ...any) error
	held    []eventlog.Notice          // that go with the next one
	known   func(eventlog.Notice) bool // the connection is told of it in another way; may be nil

	conn   *server.Conn
	cancel context.CancelFunc
	feed   atomic.Pointer[eventlog.Subscription] // where the events come from; nil: there is none yet
	last   atomic.Int64                          // when something was sent last, in nanoseconds since began
	began  time.Time
}

func newSubscription(d *dialect.Client, send func(context.Context, ...any) error) *subscription {
	return &subscription{id: "sub_" + uuid.NewString(), dialect: d, send: send, began: time.Now()}
}

// deliver sends an event; it waits for the peer as long as ctx and the
// connection last.
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

// sendHeld sends what was held together, or at least one behind the other.
func (s *subscription) sendHeld(ctx context.Context) error {
	if len(s.held) > 1 {
		messages := make([]any, len(s.held))
		for i, n := range s.held {
			messages[i] = s.dialect.Event(s.id, n.Event, dialect.Data(n.Event))
		}
		if err := s.send(ctx, messages...); !errors.Is(err, server.ErrTooLong) {
			return err
		}
	}
	for _, n := range s.held {
		if err := sendEvent(ctx, s.send, s.dialect, s.id, s.room, n.Event); err != nil {
			return err
		}
	}
	return nil
}

// sendEvent sends an event, with its texts cut if it is too long for a line.
func sendEvent(ctx context.Context, send func(context.Context, ...any) error, d *dialect.Client, subscription string, room int, e domain.Event) error {
	data := dialect.Data(e)
	err := send(ctx, d.Event(subscription, e, data))
	if errors.Is(err, server.ErrTooLong) {
		err = send(ctx, d.Event(subscription, e, fitRaw(data, room-1024)))
	}
	return err
}

func (s *subscription) touch() { s.last.Store(int64(time.Since(s.began))) }

// live sends heartbeats until ctx or the feed ends.
func (s *subscription) live(ctx context.Context, ended <-chan struct{}) {
	for {
		quiet := time.Since(s.began) - time.Duration(s.last.Load())
		if quiet >= heartbeatEvery {
			if s.send(ctx, s.dialect.Heartbeat(s.id)) != nil {
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
