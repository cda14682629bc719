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

// mergeMost is how much text deltas are merged into one.
const mergeMost = 64 << 10

// runsKept is of how many runs a subscription knows what their deltas need.
const runsKept = 256

// deltas are what a subscription has of messages that are being written.
type deltas struct {
	pace    time.Duration
	runs    map[int64]*deltaRun
	pending []*merged
	flushed time.Time
}

// A deltaRun is what the deltas of a run need. It holds none of the run's texts.
type deltaRun struct {
	ref   domain.RunRef
	quiet bool   // its deltas are not sent
	key   string // of the message that is being written
}

// merged are deltas of one message that wait to go out together.
type merged struct {
	event domain.Event // the first, with the seq of the last
	delta domain.MessageDelta
	first int64 // the seq of the first
	text  []byte
}

// due is how long the deltas that wait are still to wait, if there are any.
func (d *deltas) due() (left time.Duration, waiting bool) {
	return d.pace - time.Since(d.flushed), len(d.pending) > 0
}

// merge keeps a delta until it is due. The first of a message is at once: it
// shows that the agent has begun to write.
func (s *Subscription) merge(e domain.Event, delta domain.MessageDelta, run *deltaRun) error {
	d := &s.deltas
	isFirst := run.key != delta.Key
	run.key = delta.Key
	i := len(d.pending) - 1
	for i >= 0 && (d.pending[i].event.Run != e.Run || d.pending[i].delta.Key != delta.Key) {
		i--
	}
	if i < 0 || !bytes.Equal(d.pending[i].delta.Meta, delta.Meta) {
		e.Ref = run.ref
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

// deltaRun is the run of a delta. A replay may ask for it a million times. That a
// run cannot be read is reported once; after that its deltas are left out.
func (s *Subscription) deltaRun(id int64) (*deltaRun, error) {
	d := &s.deltas
	if run, ok := d.runs[id]; ok {
		return run, nil
	}
	session, err := s.log.opts.Runs.SessionOf(s.ctx, id)
	run := &deltaRun{quiet: session.Quiet}
	switch {
	case err == nil:
		run.ref = session.Ref()
	case store.IsDamaged(err):
		run.quiet = true
	case errors.Is(err, store.ErrNotFound): // it was deleted
		run.quiet, err = true, nil
	default:
		return run, err
	}
	if d.runs == nil || len(d.runs) >= runsKept {
		d.runs = make(map[int64]*deltaRun)
	}
	d.runs[id] = run
	return run, err
}

// flush delivers the deltas that wait. Each is numbered with its last seq, as
// long as nothing before that is still to come: whoever resumes after a number
// misses nothing, even if the hub dies between two deltas. Where messages are
// written at the same time some text would come again then, so their deltas
// are to go out together.
func (s *Subscription) flush() error {
	pending := s.deltas.pending
	if len(pending) == 0 {
		return nil
	}
	s.deltas.pending = nil
	s.deltas.flushed = time.Now()
	last := int64(0)
	for i, m := range pending { // in the order of their first
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

// A progress is how far somebody has come in the log, for those who wait for that.
type progress struct {
	mu      sync.Mutex // guards the fields below
	reached int64
	waiting []awaited
}

// An awaited is somebody who waits until a seq is reached.
type awaited struct {
	seq     int64
	reached chan struct{}
}

// reach lets those go on who wait for seq, or for less.
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

// await waits until seq is reached, or nothing will be any more. The error is that of
// ctx if it ends first.
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
