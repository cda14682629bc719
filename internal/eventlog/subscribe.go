package eventlog

import (
	"cmp"
	"context"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"github.com/duet-rpc/duet-rpc/internal/domain"
)

// Subscribe makes a subscription: those events that are wanted, first what is in
// the log after Since, then what happens. Questions that wait for a human are
// delivered too, as events without a number, unless the replay brings them.
//
// Nothing is delivered before Start. deliver is called by one goroutine and may
// block; the subscription ends with ctx, with the log, when deliver returns an
// error, or by Close. The error is a [*domain.Error].
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
	if want.Run != "" {
		var err error
		if s.run, s.thread, err = l.opts.Runs.Scope(ctx, want.Run); err != nil {
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

// Start begins to deliver.
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
	defer context.AfterFunc(s.log.ctx, s.cancel)() // a subscriber that does not read holds up nothing
	if err := s.loop(); s.ctx.Err() == nil {
		s.log.opts.Logger.Debug("a subscription ended", "id", s.ID, "err", err)
	}
}

// loop delivers until something ends it, and returns what.
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

// wait waits for more, or until merged deltas are due.
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

// CatchUp waits until all that is in the log now was delivered, or the subscription has
// ended. The error is that of ctx if it ends first.
func (s *Subscription) CatchUp(ctx context.Context) error {
	return s.delivered.await(ctx, s.log.Last(), s.ended)
}

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

// Ask tells subscribers something that is not kept in the log and that one of them is to
// answer: those that are there, and those that come before it is withdrawn, each once. heard
// is closed when the first one is told.
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
