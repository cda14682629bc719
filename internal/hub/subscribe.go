package hub

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"time"

	"github.com/duet-rpc/duet-rpc/internal/store"

	"github.com/duet-rpc/duet-rpc/internal/domain"

	"github.com/google/uuid"
)

const (
	// deltaPace is how far apart the deltas of a message are at least: at
	// most 20 a second (Emacs 28 needs 0.3 ms an event).
	deltaPace = 50 * time.Millisecond
	// mergeMost is how much text deltas are merged into one.
	mergeMost = 64 << 10
	// pageSize is how many events are read at once.
	pageSize = 256
)

// A Subscription brings events to one subscriber, in the order of their
// numbers. It holds no queue: it reads the log at the subscriber's pace, from
// memory while it keeps up, else from the store.
type Subscription struct {
	ID string

	hub     *Hub
	kinds   map[domain.EventKind]bool // nil: all
	run     int64                     // 0: all
	thread  int64                     // 0: all
	since   int64                     // below 0: no replay
	cursor  int64                     // the last event that was looked at
	deliver func(context.Context, Notice) error
	watcher *watcher
	beside  beside
	last    atomic.Int64 // when something was delivered, in nanoseconds
	cancel  context.CancelFunc
	ctx     context.Context
	ended   chan struct{}
	started atomic.Bool

	runs      map[int64]subscribedRun
	pending   []*merged
	flushed   time.Time
	announced map[string]bool // approvals that a replay brought; nil afterwards
	shown     map[string]bool // approvals that were shown as pending while their event was still to come
}

// merged are deltas of one message that wait to go out together.
type merged struct {
	event domain.Event // the first, with the seq of the last
	delta domain.MessageDelta
	first int64 // the seq of the first
	text  []byte
}

// Subscribe makes a subscription: those events that filter chooses, first
// what is in the log after since, unless that is below 0, then what happens.
// Pending approvals are delivered too, as new_approval events, unless the
// replay brings them. Nothing is delivered before Start. deliver is called by
// one goroutine and may block; the subscription ends with ctx, when deliver
// returns an error, or by Close.
func (h *Hub) Subscribe(ctx context.Context, f Filter, since int64, deliver func(context.Context, Notice) error) (*Subscription, error) {
	s := &Subscription{
		ID: "sub_" + uuid.NewString(), hub: h, since: since, deliver: deliver,
		watcher: &watcher{wake: make(chan struct{}, 1)}, ended: make(chan struct{}),
	}
	if f.Kinds != nil {
		s.kinds = make(map[domain.EventKind]bool)
		for _, k := range f.Kinds {
			s.kinds[k] = true
		}
	}
	if f.Run != "" {
		run, err := h.Session(ctx, f.Run)
		if err != nil {
			return nil, err
		}
		s.run = run.Run.ID
		whole, err := h.store.NamesThread(ctx, f.Run)
		if err != nil {
			return nil, stored(err)
		}
		if whole { // whatever runs it will have
			s.run, s.thread = 0, run.Thread.ID
		}
	}
	s.cursor = since
	if since < 0 {
		s.cursor = h.events.last()
	} else if last := h.events.last(); since > last {
		return nil, domain.Invalid("since", "a seq of this log", "one after its end")
	}
	s.ctx, s.cancel = context.WithCancel(ctx)
	s.last.Store(time.Now().UnixNano())
	return s, nil
}

// From is the number of the last event that will not be delivered, for it was
// there before. It may be asked before Start.
func (s *Subscription) From() int64 { return s.cursor }

// Start begins to deliver.
func (s *Subscription) Start() {
	if !s.started.CompareAndSwap(false, true) {
		return
	}
	s.hub.mu.Lock()
	if s.hub.closing {
		s.hub.mu.Unlock()
		s.cancel()
		close(s.ended)
		return
	}
	s.hub.active.Add(1) // before Close waits
	s.hub.mu.Unlock()
	stop := s.hub.events.watch(s.watcher)
	unbeside := s.hub.addBeside(s)
	unhub := context.AfterFunc(s.hub.ctx, s.cancel) // a subscriber that does not read holds up nothing
	go func() {
		defer s.hub.active.Done()
		defer close(s.ended)
		defer s.cancel()
		defer unhub()
		defer unbeside()
		defer stop()
		if err := s.loop(); s.ctx.Err() == nil {
			s.hub.log.Debug("a subscription ended", "id", s.ID, "err", err)
		}
	}()
}

// Close ends the subscription and waits until deliver has returned.
func (s *Subscription) Close() {
	s.cancel()
	if s.started.Load() {
		<-s.ended
	}
}

// Idle is how long nothing was delivered.
func (s *Subscription) Idle() time.Duration {
	return time.Since(time.Unix(0, s.last.Load()))
}

// Done is closed when nothing more will be delivered.
func (s *Subscription) Done() <-chan struct{} { return s.ended }

// loop delivers until something ends it, and returns what.
func (s *Subscription) loop() error {
	if err := s.replay(); err != nil {
		return err
	}
	for {
		events, ok := s.hub.events.after(s.cursor, pageSize)
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
	if len(s.pending) > 0 {
		left := deltaPace - time.Since(s.flushed)
		if left <= 0 {
			return s.flush()
		}
		timer := time.NewTimer(left)
		defer timer.Stop()
		due = timer.C
	}
	select {
	case <-s.ctx.Done():
		return s.ctx.Err()
	case <-s.hub.ctx.Done():
		return errClosing
	case <-s.watcher.wake:
		for _, n := range s.beside.take() {
			if err := s.send(n); err != nil {
				return err
			}
		}
		return nil
	case <-due:
		return s.flush()
	}
}

// isDelta reports whether an event is one of those that may be merged.
func isDelta(e domain.Event) bool {
	_, is := e.Payload.(domain.MessageDelta)
	return is
}

// wants reports whether the filter chooses an event.
func (s *Subscription) wants(e domain.Event) bool {
	return (s.run == 0 || e.Run == s.run) && (s.thread == 0 || e.Thread == s.thread) && (s.kinds == nil || s.kinds[e.Payload.Kind()])
}

// take delivers an event, or merges it with others.
func (s *Subscription) take(e domain.Event) error {
	s.cursor = e.Seq
	if e.Unreadable() { // nobody knows whose it was
		return s.lost(e.Seq, e.Seq)
	}
	if !s.wants(e) {
		return nil
	}
	switch p := e.Payload.(type) {
	case domain.MessageDelta:
		return s.merge(e, p)
	case domain.ApprovalRequested:
		if s.shown[p.ApprovalID] {
			delete(s.shown, p.ApprovalID)
			return nil
		}
		if s.announced != nil {
			s.announced[p.ApprovalID] = true
		}
	}
	if err := s.flush(); err != nil { // numbers only rise
		return err
	}
	return s.send(Notice{Event: e})
}

func (s *Subscription) merge(e domain.Event, delta domain.MessageDelta) error {
	run, err := s.runOf(e.Run)
	if store.IsDamaged(err) { // once: all its deltas are lost
		return s.lost(e.Seq, e.Seq)
	}
	if err != nil || run.quiet {
		return err
	}
	i := slices.IndexFunc(s.pending, func(m *merged) bool { return m.event.Run == e.Run && m.delta.Key == delta.Key })
	if i < 0 {
		e.Ref = run.ref
		s.pending = append(s.pending, &merged{event: e, delta: delta, first: e.Seq, text: []byte(delta.Text)})
	} else {
		m := s.pending[i]
		m.event.Seq = e.Seq
		m.text = append(m.text, delta.Text...)
		if len(m.text) >= mergeMost {
			return s.flush()
		}
	}
	if s.announced == nil && time.Since(s.flushed) >= deltaPace {
		return s.flush()
	}
	return nil
}

// A subscribedRun is what of a run never changes, and its deltas need. It holds
// none of the run's texts.
type subscribedRun struct {
	ref   domain.RunRef
	quiet bool // its deltas are not told
}

// runOf is the run of a delta. A replay asks it for each of a million. One that
// cannot be read is told once, and is quiet then.
func (s *Subscription) runOf(id int64) (subscribedRun, error) {
	const most = 256
	if run, ok := s.runs[id]; ok {
		return run, nil
	}
	session, err := s.hub.SessionOf(s.ctx, id)
	run := subscribedRun{quiet: session.Quiet}
	switch {
	case err == nil:
		run.ref = session.Ref()
	case store.IsDamaged(err):
		run.quiet = true
	default:
		return run, err
	}
	if s.runs == nil || len(s.runs) >= most {
		s.runs = make(map[int64]subscribedRun)
	}
	s.runs[id] = run
	return run, err
}

// flush delivers the deltas that wait. Each is numbered with its last seq, as
// long as nothing before that is still to come: whoever resumes after a number
// misses nothing, even if the hub dies between two deltas. Where messages are
// written at the same time some text would come again then, so their deltas
// are to go out together.
func (s *Subscription) flush() error {
	if len(s.pending) == 0 {
		return nil
	}
	pending := s.pending
	s.pending = nil
	s.flushed = time.Now()
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

func (s *Subscription) send(n Notice) error {
	if err := s.ctx.Err(); err != nil {
		return err
	}
	err := s.deliver(s.ctx, n)
	s.last.Store(time.Now().UnixNano())
	return err
}

// isClosed reports whether err means that the hub is closing.
func isClosed(err error) bool {
	return errors.Is(err, errClosing) || errors.Is(err, store.ErrClosed) || errors.Is(err, context.Canceled)
}
