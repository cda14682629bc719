package eventlog

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/store"
)

// take delivers an event or merges it with waiting deltas.
func (s *Subscription) take(e domain.Event) error {
	s.cursor = e.Seq
	if e.Unreadable() { // its turn is unknown
		return s.tellDamage(e.Seq, e.Seq)
	}
	if !s.wants(e) {
		return nil
	}
	switch p := e.Payload.(type) {
	case domain.MessageDelta:
		return s.takeDelta(e, p)
	case domain.ApprovalRequested:
		if s.announced != nil {
			s.announced[p.ApprovalID] = true
		}
	}
	if err := s.flush(); err != nil { // numbers only rise
		return err
	}
	return s.send(Notice{Event: e})
}

// takeDelta merges a delta with the waiting ones, if its turn sends deltas.
func (s *Subscription) takeDelta(e domain.Event, delta domain.MessageDelta) error {
	turn, err := s.deltaTurn(e.Turn)
	if store.IsDamaged(err) { // reported once: all its deltas are lost
		return s.tellDamage(e.Seq, e.Seq)
	}
	if err != nil || turn.quiet {
		return err
	}
	return s.merge(e, delta, turn)
}

// span is a range of sequence numbers, both ends included; its zero value is empty.
type span struct{ from, to int64 }

func (p *span) add(seq int64) {
	if p.from == 0 {
		p.from = seq
	}
	p.to = seq
}

// lagged reports the range of left-out deltas, if any.
func (s *Subscription) lagged(left *span) error {
	if left.from == 0 {
		return nil
	}
	gap := *left
	*left = span{}
	return s.send(Notice{Event: domain.Event{Seq: gap.to, Time: time.Now(), Payload: domain.Lagged{From: gap.from, To: gap.to}}})
}

// skipTo continues after an unreadable part of the log; 0 means none.
func (s *Subscription) skipTo(seq int64) error {
	if seq <= s.cursor {
		return nil
	}
	from := s.cursor + 1
	s.cursor = seq
	return s.tellDamage(from, seq)
}

// tellDamage reports an unreadable part of the log to the subscriber, whatever it subscribed to.
func (s *Subscription) tellDamage(from, to int64) error {
	if err := s.flush(); err != nil { // numbers only rise
		return err
	}
	damaged := domain.LogDamaged{From: from, To: to, Message: s.log.opts.Issue}
	return s.send(Notice{Event: domain.Event{Seq: to, Time: time.Now(), Payload: damaged}})
}

// replay delivers the stored log and the open questions.
func (s *Subscription) replay() error {
	if s.since >= 0 {
		s.announced = make(map[string]bool)
		for {
			p, err := s.log.readOn(s.ctx, s.cursor)
			if err != nil {
				return err
			}
			for _, e := range p.events {
				if err := s.take(e); err != nil {
					return err
				}
			}
			if err := s.skipTo(p.lostTo); err != nil {
				return err
			}
			if p.end {
				break
			}
		}
		if err := s.flush(); err != nil {
			return err
		}
	}
	seen := s.announced
	s.announced = nil
	if s.kinds != nil && !s.kinds[domain.EventApprovalRequested] {
		return nil
	}
	return s.showPending(seen)
}

// showPending delivers the open questions, except those in seen and those that the log will
// deliver. Everything said before a question is delivered first.
func (s *Subscription) showPending(seen map[string]bool) error {
	pending, err := s.log.opts.Questions.Pending(s.ctx, s.turn)
	if err != nil {
		return err
	}
	pending = slices.DeleteFunc(pending, func(e domain.Event) bool {
		asked, is := e.Payload.(domain.ApprovalRequested)
		return is && (seen[asked.ApprovalID] || s.session != 0 && e.Session != s.session)
	})
	if len(pending) == 0 {
		return nil
	}
	coming, err := s.log.questionsAfter(s.ctx, s.cursor)
	if err != nil {
		return err
	}
	for _, e := range pending {
		if asked, is := e.Payload.(domain.ApprovalRequested); is {
			if coming[asked.ApprovalID] {
				continue
			}
			asked.Replayed = true
			e.Payload = asked
		}
		e.Seq = 0
		if err := s.send(Notice{Event: e}); err != nil {
			return err
		}
	}
	return nil
}

// questionsAfter returns the approvals requested in the store's log after a seq, including
// committed events that are not announced yet.
func (l *Log) questionsAfter(ctx context.Context, seq int64) (map[string]bool, error) {
	asked := make(map[string]bool)
	for {
		p, err := l.readOn(ctx, seq)
		if err != nil {
			return nil, err
		}
		for _, e := range p.events {
			seq = e.Seq
			if q, is := e.Payload.(domain.ApprovalRequested); is {
				asked[q.ApprovalID] = true
			}
		}
		if seq = max(seq, p.lostTo); p.end {
			return asked, nil
		}
	}
}

// catchUp reads events that the memory no longer holds from the store. It leaves out deltas and
// reports that with one event.
func (s *Subscription) catchUp() error {
	if err := s.flush(); err != nil {
		return err
	}
	var left span
	for range 64 { // then check whether the memory has the rest
		p, err := s.log.readOn(s.ctx, s.cursor)
		if err != nil {
			return err
		}
		for _, e := range p.events {
			if _, delta := e.Payload.(domain.MessageDelta); delta {
				s.cursor = e.Seq
				if s.wants(e) {
					left.add(e.Seq)
				}
				continue
			}
			if s.wants(e) || e.Unreadable() {
				if err := s.lagged(&left); err != nil {
					return err
				}
			}
			if err := s.take(e); err != nil {
				return err
			}
		}
		if p.lostTo > 0 {
			if err := s.lagged(&left); err != nil {
				return err
			}
		}
		if err := s.skipTo(p.lostTo); err != nil {
			return err
		}
		if p.end {
			break
		}
	}
	return s.lagged(&left)
}

// pageSize is the number of events per read.
const pageSize = 256

// page is a part of the log, with the range that could not be read.
type page struct {
	events []domain.Event
	// lostTo, if not 0, is the last unreadable event after events.
	lostTo int64
	// end reports the end of the log.
	end bool
}

// read reads the store's log after a seq. At damage the page ends and says where the log continues.
// The log has no gaps, so missing numbers are damage too.
func (l *Log) read(ctx context.Context, after int64) (page, error) {
	last := l.Last() // committed, so it must exist
	events, err := l.store.Events(ctx, after, pageSize)
	if err != nil && !store.IsDamaged(err) {
		return page{}, err
	}
	at := after
	for i, e := range events {
		if e.Seq != at+1 {
			l.opts.Damaged(fmt.Errorf("the log has %d behind %d", e.Seq, at))
			return l.behindDamage(ctx, events[:i], at)
		}
		at = e.Seq
	}
	end := len(events) < pageSize
	switch {
	case err != nil:
		return l.behindDamage(ctx, events, at)
	case end && at < last:
		l.opts.Damaged(fmt.Errorf("the log has nothing behind %d, and went to %d", at, last))
		return l.behindDamage(ctx, events, at)
	}
	return page{events: events, end: end}, nil
}

// readAgainAfter is the delay before a read is retried after a temporary error, such as too many
// open files.
const readAgainAfter = time.Second

// readOn is read with retries until ctx ends, for callers without another source.
func (l *Log) readOn(ctx context.Context, after int64) (page, error) {
	for warned := false; ; warned = true {
		p, err := l.read(ctx, after)
		if err == nil || ctx.Err() != nil || errors.Is(err, store.ErrClosed) || errors.Is(err, context.Canceled) {
			return p, err
		}
		if !warned {
			l.opts.Logger.Warn("the log cannot be read just now; a subscriber waits", "err", err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(readAgainAfter):
		}
	}
}

// behindDamage finds where the log is readable again after at. Damage covers database pages, which
// hold some dozens of events each. So the search goes ahead in growing steps, then bisects.
func (l *Log) behindDamage(ctx context.Context, events []domain.Event, at int64) (page, error) {
	last := l.Last()
	if at >= last {
		return page{events: events, end: true}, nil
	}
	damaged, readable := at+1, int64(0)
	for step := int64(1); damaged < last && readable == 0; step *= 2 {
		next := min(damaged+step, last)
		ok, err := l.readable(ctx, next)
		switch {
		case err != nil:
			return page{}, err
		case ok:
			readable = next
		default:
			damaged = next
		}
	}
	if readable == 0 {
		return page{events: events, lostTo: last}, nil
	}
	for readable-damaged > 1 {
		middle := damaged + (readable-damaged)/2
		ok, err := l.readable(ctx, middle)
		switch {
		case err != nil:
			return page{}, err
		case ok:
			readable = middle
		default:
			damaged = middle
		}
	}
	return page{events: events, lostTo: readable - 1}, nil
}

// readable reports whether an event of the log can be read.
func (l *Log) readable(ctx context.Context, seq int64) (bool, error) {
	events, err := l.store.Events(ctx, seq-1, 1)
	if err != nil && !store.IsDamaged(err) {
		return false, err
	}
	return err == nil && len(events) == 1 && events[0].Seq == seq, nil
}
