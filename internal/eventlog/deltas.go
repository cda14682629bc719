package eventlog

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/store"
)

// mergeMost limits the bytes of a merged delta.
const mergeMost = 64 << 10

// turnsKept limits the turns whose delta settings a subscription remembers.
const turnsKept = 256

// deltas is a subscription's state of unfinished messages.
type deltas struct {
	pace    time.Duration
	turns   map[int64]*deltaTurn
	pending []*merged
	flushed time.Time
}

// deltaTurn is what a subscription needs to know of a turn for its deltas. It holds no text.
type deltaTurn struct {
	ref   domain.TurnRef
	quiet bool   // its deltas are not sent
	key   string // of the current message
}

// merged is a group of deltas of one message that wait for delivery.
type merged struct {
	event domain.Event // the first delta, with the seq of the last
	delta domain.MessageDelta
	first int64 // seq of the first delta
	text  []byte
}

// due returns how long the waiting deltas must still wait. waiting is false if none wait.
func (d *deltas) due() (left time.Duration, waiting bool) {
	return d.pace - time.Since(d.flushed), len(d.pending) > 0
}

// merge keeps a delta until it is due. The first delta of a message is due at once, to show that
// the agent has begun to write.
func (s *Subscription) merge(e domain.Event, delta domain.MessageDelta, turn *deltaTurn) error {
	d := &s.deltas
	isFirst := turn.key != delta.Key
	turn.key = delta.Key
	i := len(d.pending) - 1
	for i >= 0 && (d.pending[i].event.Turn != e.Turn || d.pending[i].delta.Key != delta.Key) {
		i--
	}
	if i < 0 || !bytes.Equal(d.pending[i].delta.Meta, delta.Meta) {
		e.Ref = turn.ref
		d.pending = append(d.pending, &merged{event: e, delta: delta, first: e.Seq, text: []byte(delta.Text)})
	} else {
		m := d.pending[i]
		m.event.Seq, m.delta.Length = e.Seq, delta.Length
		m.text = append(m.text, delta.Text...)
		if len(m.text) >= mergeMost {
			return s.flush()
		}
	}
	isReplayed := s.announced != nil
	if left, _ := d.due(); !isReplayed && (isFirst || left <= 0) {
		return s.flush()
	}
	return nil
}

// deltaTurn returns the turn of a delta; a replay may call it a million times. An unreadable turn is
// reported once, and its deltas are left out.
func (s *Subscription) deltaTurn(id int64) (*deltaTurn, error) {
	d := &s.deltas
	if turn, ok := d.turns[id]; ok {
		return turn, nil
	}
	of, err := s.log.opts.Turns.TurnOf(s.ctx, id)
	turn := &deltaTurn{quiet: of.Quiet}
	switch {
	case err == nil:
		turn.ref = of.Ref()
	case store.IsDamaged(err):
		turn.quiet = true
	case errors.Is(err, store.ErrNotFound): // deleted
		turn.quiet, err = true, nil
	default:
		return turn, err
	}
	if d.turns == nil || len(d.turns) >= turnsKept {
		d.turns = make(map[int64]*deltaTurn)
	}
	d.turns[id] = turn
	return turn, err
}

// flush delivers the waiting deltas. Each has the seq of its last delta, unless an earlier event is
// still to come. So a subscriber that resumes after any number misses nothing, even if the hub
// crashes between two deltas. For messages written concurrently some text would come again, so More
// marks their deltas as one group.
func (s *Subscription) flush() error {
	pending := s.deltas.pending
	if len(pending) == 0 {
		return nil
	}
	s.deltas.pending = nil
	s.deltas.flushed = time.Now()
	last := int64(0)
	for i, m := range pending { // ordered by their first
		last = max(last, m.event.Seq)
		seq := last
		if i+1 < len(pending) {
			seq = min(seq, pending[i+1].first-1)
		}
		n := Notice{Event: m.event, More: i+1 < len(pending)}
		m.delta.Text = string(m.text)
		n.Seq, n.Payload = seq, m.delta
		if err := s.send(n); err != nil {
			return err
		}
	}
	return nil
}

// progress is a position in the log that other goroutines can wait for.
type progress struct {
	mu      sync.Mutex // guards the fields below
	reached int64
	waiting []awaited
}

// awaited is a waiter for a seq.
type awaited struct {
	seq     int64
	reached chan struct{}
}

// reach wakes the waiters for seq or less.
func (p *progress) reach(seq int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.reached = seq
	p.waiting = slices.DeleteFunc(p.waiting, func(a awaited) bool {
		if a.seq > seq {
			return false
		}
		close(a.reached)
		return true
	})
}

// await waits until seq is reached, or ended is closed. The error is that of ctx if it ends first.
func (p *progress) await(ctx context.Context, seq int64, ended <-chan struct{}) error {
	a := awaited{seq, make(chan struct{})}
	p.mu.Lock()
	if p.reached >= seq {
		p.mu.Unlock()
		return nil
	}
	p.waiting = append(p.waiting, a)
	p.mu.Unlock()
	select {
	case <-a.reached:
	case <-ended:
	case <-ctx.Done():
		return ctx.Err()
	}
	return nil
}
