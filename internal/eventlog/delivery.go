package eventlog

import (
	"time"

	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/store"
)

// take delivers an event, or merges it with others.
func (s *Subscription) take(e domain.Event) error {
	s.cursor = e.Seq
	if e.Unreadable() { // nobody knows whose it was
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

// takeDelta merges a delta with those that wait, if its run is one whose deltas
// are sent.
func (s *Subscription) takeDelta(e domain.Event, delta domain.MessageDelta) error {
	run, err := s.deltaRun(e.Run)
	if store.IsDamaged(err) { // once: all its deltas are lost
		return s.tellDamage(e.Seq, e.Seq)
	}
	if err != nil || run.quiet {
		return err
	}
	return s.merge(e, delta, run)
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
	gap := *left
	*left = span{}
	return s.send(Notice{Event: domain.Event{Seq: gap.to, Time: time.Now(), Payload: domain.Lagged{From: gap.from, To: gap.to}}})
}

// skipTo goes on behind what of the log cannot be read; 0: there is none.
func (s *Subscription) skipTo(seq int64) error {
	if seq <= s.cursor {
		return nil
	}
	from := s.cursor + 1
	s.cursor = seq
	return s.tellDamage(from, seq)
}

// tellDamage tells that a part of the log cannot be read, whatever is wanted.
func (s *Subscription) tellDamage(from, to int64) error {
	if err := s.flush(); err != nil { // numbers only rise
		return err
	}
	damaged := domain.LogDamaged{From: from, To: to, Message: s.log.opts.Issue}
	return s.send(Notice{Event: domain.Event{Seq: to, Time: time.Now(), Payload: damaged}})
}
