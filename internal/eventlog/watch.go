package eventlog

import (
	"context"
	"slices"

	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/store"
)

// A Watch has a function called with every event.
type Watch struct {
	log    *Log
	call   func(domain.Event, domain.Session)
	ctx    context.Context
	cancel context.CancelFunc
	ended  chan struct{}
	cursor int64 // the last event that call was called with

	progress progress // cursor, for others
}

// Watch calls f with every event from now on, in order, with the session that it
// belongs to, as it is then: the zero Session if there is none, or if it cannot be
// read. f is called by one goroutine and may take its time. It is told what of the
// log can be read. The watch ends with the log, or by Stop.
func (l *Log) Watch(f func(domain.Event, domain.Session)) *Watch {
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

// next calls the function with all that there is.
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
			var s domain.Session
			if e.Run != 0 {
				s, _ = w.log.opts.Runs.SessionOf(w.ctx, e.Run)
			}
			w.call(e, s)
			w.cursor = e.Seq
		}
		w.cursor = max(w.cursor, lostTo)
		w.progress.reach(w.cursor)
	}
}

// CatchUp waits until the function has been called with all that is in the log
// now, or the watch has ended. The error is that of ctx if it ends first.
func (w *Watch) CatchUp(ctx context.Context) error {
	return w.progress.await(ctx, w.log.Last(), w.ended)
}

// Stop ends the watch, and waits until the function has returned. The function
// must not call it.
func (w *Watch) Stop() {
	w.cancel()
	<-w.ended
}

// Replay calls f with the events of some kinds that came after since, up to one,
// each with the session it belongs to, as it is now; it ends when f returns
// false. Unlike Watch it does so in the caller's goroutine. What of the log is
// damaged it leaves out.
func (l *Log) Replay(ctx context.Context, kinds []domain.EventKind, since, upTo int64, f func(domain.Event, domain.Session) bool) error {
	for since < upTo {
		p, err := l.read(ctx, since)
		if err != nil {
			return err
		}
		for _, e := range p.events {
			if since = e.Seq; since > upTo {
				return nil
			}
			if e.Run == 0 || !slices.Contains(kinds, e.Payload.Kind()) {
				continue
			}
			s, err := l.opts.Runs.SessionOf(ctx, e.Run)
			if store.IsDamaged(err) { // the next one may not be
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
