package hub

import (
	"time"

	"github.com/duet-rpc/duet-rpc/internal/approval"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/store"
)

// readAgainAfter is when a log is read again that could not be for a reason that
// may pass, such as too many open files.
const readAgainAfter = time.Second

// readLog is the hub's, as long as the subscription lasts: it has no other way
// to tell what happened.
func (s *Subscription) readLog() (logPage, error) {
	for told := false; ; told = true {
		page, err := s.hub.readLog(s.ctx, s.cursor)
		if err == nil || s.ctx.Err() != nil || isClosed(err) {
			return page, err
		}
		if !told {
			s.hub.log.Warn("the log cannot be read just now; a subscriber waits", "id", s.ID, "err", err)
		}
		select {
		case <-s.ctx.Done():
		case <-time.After(readAgainAfter):
		}
	}
}

// replay brings what is in the log already, and what waits for a human.
func (s *Subscription) replay() error {
	if s.since >= 0 {
		s.announced = make(map[string]bool)
		for {
			page, err := s.readLog()
			if err != nil {
				return err
			}
			for _, e := range page.events {
				if err := s.take(e); err != nil {
					return err
				}
			}
			if err := s.skipTo(page.lostTo); err != nil {
				return err
			}
			if page.end {
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

// showPending brings the questions that wait for a human, but those that were
// seen.
func (s *Subscription) showPending(seen map[string]bool) error {
	pending, err := s.hub.store.PendingApprovals(s.ctx, s.run)
	if store.IsDamaged(err) {
		err = s.tellDamage(0, 0, "not all questions that wait for an answer can be read")
	}
	if err != nil {
		return err
	}
	s.shown = make(map[string]bool)
	for _, a := range pending {
		if seen[a.ID] || s.thread != 0 && a.Thread != s.thread {
			continue
		}
		run, err := s.hub.store.Run(s.ctx, a.Run)
		if store.IsDamaged(err) {
			if err := s.tellDamage(0, 0, "the session of a question that waits for an answer cannot be read"); err != nil {
				return err
			}
			continue
		}
		if err != nil {
			return err
		}
		asked := approval.Requested(a)
		asked.Replayed = true
		s.shown[a.ID] = true
		if err := s.send(Notice{Event: domain.Event{Time: a.Created, Ref: run.Ref(), Payload: asked}}); err != nil {
			return err
		}
	}
	return nil
}

// catchUp reads from the store what the memory does not hold any more. Deltas
// among it are left out, and one lagged event says so.
func (s *Subscription) catchUp() error {
	if err := s.flush(); err != nil {
		return err
	}
	var left span
	for range 64 { // then look whether the memory has the rest
		page, err := s.readLog()
		if err != nil {
			return err
		}
		for _, e := range page.events {
			if isDelta(e) {
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
		if page.lostTo > 0 {
			if err := s.lagged(&left); err != nil {
				return err
			}
		}
		if err := s.skipTo(page.lostTo); err != nil {
			return err
		}
		if page.end {
			break
		}
	}
	return s.lagged(&left)
}

// A span is a row of sequence numbers, both ends included; its zero value is none.
type span struct{ from, to int64 }

func (p *span) add(seq int64) {
	if p.from == 0 {
		p.from = seq
	}
	p.to = seq
}

// lagged tells which deltas were left out, if any were.
func (s *Subscription) lagged(left *span) error {
	if left.from == 0 {
		return nil
	}
	told := *left
	*left = span{}
	return s.send(Notice{Event: domain.Event{Seq: told.to, Time: time.Now(), Payload: domain.Lagged{From: told.from, To: told.to}}})
}

// skipTo goes on behind what of the log cannot be read; 0: there is none.
func (s *Subscription) skipTo(seq int64) error {
	if seq <= s.cursor {
		return nil
	}
	from := s.cursor + 1
	s.cursor = seq
	return s.lost(from, seq)
}

// lost tells that a part of the log cannot be read, whatever the filter is.
func (s *Subscription) lost(from, to int64) error {
	if err := s.flush(); err != nil { // numbers only rise
		return err
	}
	return s.tellDamage(from, to, damagedIssue)
}

func (s *Subscription) tellDamage(from, to int64, message string) error {
	return s.send(Notice{Event: domain.Event{Seq: to, Time: time.Now(), Payload: domain.LogDamaged{From: from, To: to, Message: message}}})
}
