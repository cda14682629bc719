package eventlog

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/duet-rpc/duet-rpc/internal/domain"
)

// How far apart the deltas of a message are, unless a subscriber asks for
// another pace: at most 20 a second, of which an editor may spend a
// third of a millisecond each.
const (
	DefaultPace  = 50 * time.Millisecond
	ShortestPace = 16 * time.Millisecond // a frame of a screen
	LongestPace  = time.Second
)

// A Notice is an event as it goes out to a subscriber: deltas may have been
// merged into one, and then Seq is that of the last. Deltas say of which run
// they are, too.
type Notice struct {
	domain.Event
	More bool // the next one belongs with it: whoever gets one should get both
}

// Subscribing says what a subscriber wants to be told.
type Subscribing struct {
	Kinds []domain.EventKind // nil: all
	Run   string             // any id: only that run, or that thread; "": all
	Since int64              // first what is in the log after that; below 0: nothing of it
	Pace  time.Duration      // between deltas of a message; 0: DefaultPace
}

// A Subscription brings events to one subscriber, in the order of their
// numbers. It holds no queue: it reads the log at the subscriber's pace, from
// memory while it keeps up, else from the store.
type Subscription struct {
	ID string

	log     *Log
	kinds   map[domain.EventKind]bool // nil: all
	run     int64                     // 0: all
	thread  int64                     // 0: all
	since   int64                     // below 0: no replay
	cursor  int64                     // the last event that was looked at
	deliver func(context.Context, Notice) error
	wake    wake
	unkept  unkept
	deltas  deltas
	cancel  context.CancelFunc
	ctx     context.Context
	ended   chan struct{}
	started atomic.Bool

	delivered progress

	announced map[string]bool // approvals that a replay brought; nil afterwards
}

// From is the number of the last event that will not be delivered, for it was
// there before. It may be asked before Start.
func (s *Subscription) From() int64 { return s.cursor }

// Close ends the subscription and waits until deliver has returned.
func (s *Subscription) Close() {
	s.cancel()
	if s.started.Load() {
		<-s.ended
	}
}

// Done is closed when nothing more will be delivered.
func (s *Subscription) Done() <-chan struct{} { return s.ended }

// wants reports whether the subscriber wants an event.
func (s *Subscription) wants(e domain.Event) bool {
	return !e.Erased() && (s.run == 0 || e.Run == s.run) && (s.thread == 0 || e.Thread == s.thread) && (s.kinds == nil || s.kinds[e.Payload.Kind()])
}

func (s *Subscription) send(n Notice) error {
	if err := s.ctx.Err(); err != nil {
		return err
	}
	return s.deliver(s.ctx, n)
}
