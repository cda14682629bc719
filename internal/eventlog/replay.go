package eventlog

import (
	"context"
	"slices"

	"github.com/duet-rpc/duet-rpc/internal/domain"
)

// replay brings what is in the log already, and what waits for a human.
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

// showPending brings the questions that wait for a human, but those that were seen,
// and those that the log will bring: what was said before them is there, too.
func (s *Subscription) showPending(seen map[string]bool) error {
	pending, err := s.log.opts.Questions.Pending(s.ctx, s.run)
	if err != nil {
		return err
	}
	pending = slices.DeleteFunc(pending, func(e domain.Event) bool {
		asked, is := e.Payload.(domain.ApprovalRequested)
		return is && (seen[asked.ApprovalID] || s.thread != 0 && e.Thread != s.thread)
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

// questionsAfter are the approvals whose questions the store's log has after a seq: of
// those, too, that were committed and are not announced yet.
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

// catchUp reads from the store what the memory does not hold any more. Deltas
// among it are left out, and one event says so.
func (s *Subscription) catchUp() error {
	if err := s.flush(); err != nil {
		return err
	}
	var left span
	for range 64 { // then look whether the memory has the rest
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
