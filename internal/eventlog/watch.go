package eventlog

import (
	"context"
	"slices"

	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/store"
)

// Watch calls a function with every event.
type Watch struct {
	log    *Log
	call   func(domain.Event, domain.TurnInSession)
	ctx    context.Context
	cancel context.CancelFunc
	ended  chan struct{}
	cursor int64 // last event passed to call

	progress progress // cursor, for waiters
}

// Watch calls f with every new event in order, with the event's session at that time. The Session
// is zero if none applies or it cannot be read. One goroutine calls f, which may block. f gets only
// the readable part of the log. The watch ends with the log, or by Stop.
func (l *Log) Watch(f func(domain.Event, domain.TurnInSession)) *Watch {
	w := &Watch{log: l, call: f, ended: make(chan struct{}), cursor: l.Last()}
	w.progress.reach(w.cursor)
	w.ctx, w.cancel = context.WithCancel(l.ctx)
	more := make(wake, 1)
	stop := l.wakeUp(more)
	run := func() {
		defer close(w.ended)
		defer stop()
		for w.next() == nil {
			select {
			case <-more:
			case <-w.ctx.Done():
				return
			}
		}
	}
	if !l.group.Go(run) {
		stop()
		close(w.ended)
	}
	return w
}

// next calls the function with all new events.
func (w *Watch) next() error {
	for {
		events, ok := w.log.recent(w.cursor, pageSize)
		lostTo := int64(0)
		if !ok {
			p, err := w.log.readOn(w.ctx, w.cursor)
			if err != nil {
				return err
			}
			events, lostTo = p.events, p.lostTo
		}
		if len(events) == 0 && lostTo == 0 {
			return nil
		}
		for _, e := range events {
			if err := w.ctx.Err(); err != nil {
				return err
			}
			var s domain.TurnInSession
			if e.Turn != 0 {
				s, _ = w.log.opts.Turns.TurnOf(w.ctx, e.Turn)
			}
			w.call(e, s)
			w.cursor = e.Seq
		}
		w.cursor = max(w.cursor, lostTo)
		w.progress.reach(w.cursor)
	}
}

// CatchUp waits until the function has been called with everything now in the log, or the watch has
// ended. The error is that of ctx if it ends first.
func (w *Watch) CatchUp(ctx context.Context) error {
	return w.progress.await(ctx, w.log.Last(), w.ended)
}

// Stop ends the watch and waits until the function has returned. The function must not call Stop.
func (w *Watch) Stop() {
	w.cancel()
	<-w.ended
}

// Replay calls f with the events of some kinds after since, up to upTo, each with its current
// session. It ends when f returns false. It runs in the caller's goroutine and skips damaged parts
// of the log.
func (l *Log) Replay(ctx context.Context, kinds []domain.EventKind, since, upTo int64, f func(domain.Event, domain.TurnInSession) bool) error {
	for since < upTo {
		p, err := l.read(ctx, since)
		if err != nil {
			return err
		}
		for _, e := range p.events {
			if since = e.Seq; since > upTo {
				return nil
			}
			if e.Turn == 0 || !slices.Contains(kinds, e.Payload.Kind()) {
				continue
			}
			s, err := l.opts.Turns.TurnOf(ctx, e.Turn)
			if store.IsDamaged(err) { // the next one may be readable
				continue
			}
			if err != nil {
				return err
			}
			if !f(e, s) {
				return nil
			}
		}
		if since = max(since, p.lostTo); p.end {
			return nil
		}
	}
	return nil
}
