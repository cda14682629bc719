package eventlog

import (
	"cmp"
	"context"
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
