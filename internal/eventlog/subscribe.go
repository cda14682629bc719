package eventlog

import (
	"cmp"
	"context"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"github.com/duet-rpc/duet-rpc/internal/domain"
)

// Subscribe creates a subscription for the wanted events: first the stored log after Since, then
// new events. Open questions are delivered too, as events without a number, unless the replay
// delivers them.
//
// Nothing is delivered before Start. One goroutine calls deliver, which may block. The subscription
// ends with ctx, with the log, when deliver returns an error, or by Close. The error is a
// [*domain.Error].
func (l *Log) Subscribe(ctx context.Context, want Subscribing, deliver func(context.Context, Notice) error) (*Subscription, error) {
	s := &Subscription{
		ID: "sub_" + uuid.NewString(), log: l, since: want.Since, deliver: deliver, wake: make(wake, 1), ended: make(chan struct{}),
		deltas: deltas{pace: cmp.Or(want.Pace, DefaultPace)},
	}
	if want.Kinds != nil {
		s.kinds = make(map[domain.EventKind]bool)
		for _, k := range want.Kinds {
			s.kinds[k] = true
		}
	}
	if want.Turn != "" {
		var err error
		if s.turn, s.session, err = l.opts.Turns.Scope(ctx, want.Turn); err != nil {
			return nil, err
		}
	}
	last := l.Last()
	if want.Since > last {
		return nil, domain.Invalid("since", "a seq of this log", "one after its end")
	}
	s.cursor = want.Since
	if want.Since < 0 {
		s.cursor = last
	}
	s.ctx, s.cancel = context.WithCancel(ctx)
	return s, nil
}

// Start begins delivery.
func (s *Subscription) Start() {
	if !s.started.CompareAndSwap(false, true) {
		return
	}
	if !s.log.group.Go(s.serve) {
		s.cancel()
		close(s.ended)
	}
}

func (s *Subscription) serve() {
	defer close(s.ended)
	defer s.cancel()
	defer s.log.wakeUp(s.wake)()
	defer s.log.admit(s)()
	defer context.AfterFunc(s.log.ctx, s.cancel)() // a subscriber that does not read must not block the end of the log
	if err := s.loop(); s.ctx.Err() == nil {
		s.log.opts.Logger.Debug("a subscription ended", "id", s.ID, "err", err)
	}
}

// loop delivers until an error ends it, and returns the error.
func (s *Subscription) loop() error {
	if err := s.replay(); err != nil {
		return err
	}
	for {
		events, ok := s.log.recent(s.cursor, pageSize)
		if !ok {
			if err := s.catchUp(); err != nil {
				return err
			}
			continue
		}
		for _, e := range events {
			if err := s.take(e); err != nil {
				return err
			}
		}
		if len(events) > 0 {
			continue
		}
		if err := s.wait(); err != nil {
			return err
		}
	}
}

// wait waits for new events, or until merged deltas are due.
func (s *Subscription) wait() error {
	var due <-chan time.Time
	if left, waiting := s.deltas.due(); waiting {
		if left <= 0 {
			return s.flush()
		}
		timer := time.NewTimer(left)
		defer timer.Stop()
		due = timer.C
	} else {
		s.delivered.reach(s.cursor)
	}
	select {
	case <-s.ctx.Done():
		return s.ctx.Err()
	case <-s.wake:
		for _, e := range s.unkept.take() {
			if err := s.send(Notice{Event: e}); err != nil {
				return err
			}
		}
		return nil
	case <-due:
		return s.flush()
	}
}

// CatchUp waits until everything now in the log has been delivered, or the subscription has ended.
// The error is that of ctx if it ends first.
func (s *Subscription) CatchUp(ctx context.Context) error {
	return s.delivered.await(ctx, s.log.Last(), s.ended)
}

// The interval between deltas of a message, unless a subscriber sets its own pace: at most 20 a
// second. An editor may spend a third of a millisecond on each.
const (
	DefaultPace  = 50 * time.Millisecond
	ShortestPace = 16 * time.Millisecond // one screen frame
	LongestPace  = time.Second
)

// Notice is an event for a subscriber. A delta may contain several; its Seq is then that of the
// last. Deltas also name their turn.
type Notice struct {
	domain.Event
	More bool // the next notice belongs to the same group; a subscriber should apply both
}

// Subscribing selects the events of a subscription.
type Subscribing struct {
	Kinds []domain.EventKind // nil: all
	Turn  string             // any id: that turn or session only; "": all
	Since int64              // replay after this number; below 0: no replay
	Pace  time.Duration      // between deltas of a message; 0: DefaultPace
}

// Subscription delivers events to one subscriber in the order of their numbers. It has no queue: it
// reads the log at the subscriber's pace, from memory, or from the store if it falls behind.
type Subscription struct {
	ID string

	log     *Log
	kinds   map[domain.EventKind]bool // nil: all
	turn    int64                     // 0: all
	session int64                     // 0: all
	since   int64                     // below 0: no replay
	cursor  int64                     // last event read
	deliver func(context.Context, Notice) error
	wake    wake
	unkept  unkept
	deltas  deltas
	cancel  context.CancelFunc
	ctx     context.Context
	ended   chan struct{}
	started atomic.Bool

	delivered progress

	announced map[string]bool // approvals delivered by the replay; nil afterwards
}

// From returns the number of the last event before the subscription, which it does not deliver. It
// may be called before Start.
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

// wants reports whether the subscription selects an event.
func (s *Subscription) wants(e domain.Event) bool {
	return !e.Erased() && (s.turn == 0 || e.Turn == s.turn) && (s.session == 0 || e.Session == s.session) && (s.kinds == nil || s.kinds[e.Payload.Kind()])
}

func (s *Subscription) send(n Notice) error {
	if err := s.ctx.Err(); err != nil {
		return err
	}
	return s.deliver(s.ctx, n)
}

// Ask sends subscribers a request that the log does not store and that one of them answers. Current
// subscribers get it, and those that arrive before it is withdrawn, each once. heard is closed when
// the first subscriber gets it.
func (l *Log) Ask(e domain.Event) (heard <-chan struct{}, withdraw func()) {
	e.Time = time.Now()
	a := &ask{e, make(chan struct{})}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.asked[a] = struct{}{}
	for s := range l.open {
		l.ask(a, s)
	}
	return a.heard, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.asked, a)
	}
}
