// Package eventlog delivers events to subscribers and watchers. The store keeps the log; its most
// recent part is in memory too.
//
//   - log.go takes committed events, and publishes events that are not stored.
//   - subscribe.go delivers events to one subscriber, at its own pace.
//   - deltas.go merges the pieces of an unfinished message.
//   - delivery.go replays the stored log, and reads around damage.
//   - watch.go calls a function of the program with each event.
//
// The store's writer only adds events to the memory.
package eventlog

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/duet-rpc/duet-rpc/internal/background"
	"github.com/duet-rpc/duet-rpc/internal/domain"
)

// Store stores the log.
type Store interface {
	// Events lists the log after seq, at most limit entries. With an error it returns the entries
	// before the unreadable one.
	Events(ctx context.Context, after int64, limit int) ([]domain.Event, error)
	// LastSeq returns the number of the last event, or 0.
	LastSeq(ctx context.Context) (int64, error)
}

// Turns resolves the session of an event.
type Turns interface {
	// TurnOf returns the current session of a turn, by row id.
	TurnOf(ctx context.Context, turn int64) (domain.TurnInSession, error)
	// Scope resolves an id of any kind to a turn, or else to a session. Its errors are safe to show
	// to clients.
	Scope(ctx context.Context, id string) (turn, session int64, err error)
}

// Questions knows the open questions.
type Questions interface {
	// Pending returns the open questions of one turn, or of all if turn is 0, as events with the time
	// of asking. A [domain.LogDamaged] event replaces those that cannot be read.
	Pending(ctx context.Context, turn int64) ([]domain.Event, error)
}

// Options configure a Log.
type Options struct {
	Turns     Turns
	Questions Questions
	// Damaged is called with signs of a damaged log, besides the store's errors. It must not block.
	Damaged func(error)
	// Issue is the text for subscribers about a damaged log.
	Issue  string
	Logger *slog.Logger
}

// Log delivers events to subscribers and watchers. Its methods may be called from any goroutine.
type Log struct {
	opts   Options
	ctx    context.Context // ends with the log
	cancel context.CancelFunc
	group  background.Group // subscriptions and watchers

	mu     sync.Mutex // guards the fields below; held during no call
	store  Store
	began  int64
	last   int64 // seq of the last announced event
	memory memory
	wakes  map[wake]struct{} // of goroutines that wait for events
	open   map[*Subscription]struct{}
	asked  map[*ask]struct{} // open requests to subscribers
}

// ask is a request to subscribers that the log does not store.
type ask struct {
	event domain.Event
	heard chan struct{} // closed when a subscriber gets it
}

// wake wakes one waiting goroutine. It holds at most one signal.
type wake chan struct{}

func (w wake) up() {
	select {
	case w <- struct{}{}:
	default:
	}
}

// New returns a log that ends with ctx.
func New(ctx context.Context, opts Options) *Log {
	l := &Log{opts: opts, wakes: make(map[wake]struct{}), open: make(map[*Subscription]struct{}), asked: make(map[*ask]struct{})}
	l.ctx, l.cancel = context.WithCancel(ctx)
	return l
}

// Open sets the store and the end of its log. It is called once, before any other method except
// Committed.
func (l *Log) Open(ctx context.Context, s Store) error {
	last, err := s.LastSeq(ctx)
	if err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.store, l.began, l.last = s, last, max(l.last, last)
	return nil
}

// Close ends all subscriptions and watchers, and waits for their callbacks. The error is that of
// ctx if it ends first.
func (l *Log) Close(ctx context.Context) error {
	l.cancel()
	return l.group.Close(ctx)
}

// Began returns the number of the last event of the previous process. Later events include the
// recovery.
func (l *Log) Began() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.began
}

// Last returns the number of the last announced event.
func (l *Log) Last() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.last
}

// Committed takes committed events, in order, and wakes their readers. It stores nothing: subscribers
// read from the store. The store's writer calls it; it never blocks.
func (l *Log) Committed(events []domain.Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, e := range events {
		l.memory.add(e)
		l.last = e.Seq
	}
	for w := range l.wakes {
		w.up()
	}
}

// Publish sends subscribers an event that the log does not store, such as terminal output. A slow
// subscriber misses it. It returns the number of recipients.
func (l *Log) Publish(e domain.Event) (recipients int) {
	e.Time = time.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	for s := range l.open {
		if s.wants(e) && s.unkept.put(e) {
			recipients++
			s.wake.up()
		}
	}
	return recipients
}

// Forget drops events from memory that all current subscribers have read.
func (l *Log) Forget() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.memory = memory{}
}

// recent returns at most limit events after a seq. ok is false if the memory does not hold all of
// them. A waiting caller holds no lock.
func (l *Log) recent(seq int64, limit int) (events []domain.Event, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	behind := l.last - seq
	switch {
	case behind <= 0:
		return nil, true
	case behind > int64(l.memory.count):
		return nil, false
	}
	return l.memory.end(int(behind), limit), true
}

// wakeUp signals w with each new event until stop is called.
func (l *Log) wakeUp(w wake) (stop func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.wakes[w] = struct{}{}
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.wakes, w)
	}
}

// ask sends a request to a subscription. The log is locked.
func (l *Log) ask(a *ask, s *Subscription) {
	if !s.wants(a.event) || !s.unkept.put(a.event) {
		return
	}
	s.wake.up()
	select {
	case <-a.heard:
	default:
		close(a.heard)
	}
}

// admit adds a subscription for published events and open requests.
func (l *Log) admit(s *Subscription) (remove func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.open[s] = struct{}{}
	for a := range l.asked {
		l.ask(a, s)
	}
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.open, s)
	}
}

// Limits of the log in memory. A subscriber further behind reads from the store.
const (
	keepEvents = 8192
	keepBytes  = 4 << 20
)

// memory is the end of the log, a ring buffer.
type memory struct {
	ring  []domain.Event
	first int // index of the oldest event
	count int
	bytes int
}

func size(e domain.Event) int { return e.Payload.Size() + 64 }

// add adds an event and drops the oldest ones above the limits.
func (m *memory) add(e domain.Event) {
	if m.ring == nil {
		m.ring = make([]domain.Event, keepEvents)
	}
	for m.count == keepEvents || m.count > 0 && m.bytes+size(e) > keepBytes {
		m.bytes -= size(m.ring[m.first])
		m.ring[m.first] = domain.Event{}
		m.first = (m.first + 1) % keepEvents
		m.count--
	}
	m.ring[(m.first+m.count)%keepEvents] = e
	m.count++
	m.bytes += size(e)
}

// end copies at most limit of the last events, beginning with the one that has behind events after
// it.
func (m *memory) end(behind, limit int) []domain.Event {
	events := make([]domain.Event, min(behind, limit))
	for i := range events {
		events[i] = m.ring[(m.first+m.count-behind+i)%keepEvents]
	}
	return events
}

// unkeptMost limits the unstored events that wait for a subscriber.
const unkeptMost = 100

// unkept is a subscriber's queue of unstored events. It uses no memory while empty.
type unkept struct {
	mu    sync.Mutex // guards queue
	queue []domain.Event
}

// put queues an event and reports whether the queue had room.
func (u *unkept) put(e domain.Event) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	if len(u.queue) >= unkeptMost {
		return false
	}
	u.queue = append(u.queue, e)
	return true
}

// take returns the waiting events and empties the queue.
func (u *unkept) take() []domain.Event {
	u.mu.Lock()
	defer u.mu.Unlock()
	queue := u.queue
	u.queue = nil
	return queue
}
