package eventlog

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/duet-rpc/duet-rpc/internal/background"
	"github.com/duet-rpc/duet-rpc/internal/domain"
)

// A Store keeps the log.
type Store interface {
	// Events lists the log from after seq on, at most limit entries. With an error
	// it returns those before what could not be read.
	Events(ctx context.Context, after int64, limit int) ([]domain.Event, error)
	// LastSeq is the number of the last event, or 0.
	LastSeq(ctx context.Context) (int64, error)
}

// Runs knows whose an event is.
type Runs interface {
	// SessionOf is a run by its row, as it is now.
	SessionOf(ctx context.Context, run int64) (domain.Session, error)
	// Scope is what an id of any kind chooses: a run, or else a whole thread. Its
	// errors can be told.
	Scope(ctx context.Context, id string) (run, thread int64, err error)
}

// Questions knows what waits for a human.
type Questions interface {
	// Pending are the questions that wait for a human, of one run or of all where
	// run is 0, as events of when they were asked. What of them cannot be read is
	// told by a [domain.LogDamaged] among them.
	Pending(ctx context.Context, run int64) ([]domain.Event, error)
}

// Options say what a Log stands on.
type Options struct {
	Runs      Runs
	Questions Questions
	// Damaged is called with what shows that the log is damaged, beside the errors
	// of the store. It must not block.
	Damaged func(error)
	// Issue is what subscribers are told of a log that is damaged.
	Issue  string
	Logger *slog.Logger
}

// A Log brings events to subscribers and watchers. Its methods may be called from
// any goroutine.
type Log struct {
	opts   Options
	ctx    context.Context // ends with the log
	cancel context.CancelFunc
	group  background.Group // of subscriptions and watchers

	mu     sync.Mutex // guards the fields below; nothing is called while it is held
	store  Store
	began  int64
	last   int64 // seq of the last event that was announced
	memory memory
	wakes  map[wake]struct{} // of whoever waits for more
	open   map[*Subscription]struct{}
	asked  map[*ask]struct{} // of subscribers, and not answered yet
}

// An ask is something that the log does not keep, and that subscribers are to answer.
type ask struct {
	event domain.Event
	heard chan struct{} // closed once a subscriber is told
}

// A wake is a wake-up call that somebody waits for: at most one is outstanding.
type wake chan struct{}

func (w wake) up() {
	select {
	case w <- struct{}{}:
	default:
	}
}

// New is a log that ends with ctx.
func New(ctx context.Context, opts Options) *Log {
	l := &Log{opts: opts, wakes: make(map[wake]struct{}), open: make(map[*Subscription]struct{}), asked: make(map[*ask]struct{})}
	l.ctx, l.cancel = context.WithCancel(ctx)
	return l
}

// Open says where the log is kept, and so where it ends. It is called once,
// before anything else but Append.
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

// Close ends all subscriptions and watchers, and waits until what they call has
// returned. The error is that of ctx if it ends first.
func (l *Log) Close(ctx context.Context) error {
	l.cancel()
	return l.group.Close(ctx)
}

// Began is the number of the last event that the process before this one
// announced: what it left behind is dealt with after it.
func (l *Log) Began() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.began
}

// Last is the number of the last event that was announced.
func (l *Log) Last() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.last
}

// Append takes events that were committed, in order. It is for the store's
// writer, and waits for nobody.
func (l *Log) Append(events []domain.Event) {
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

// Publish tells subscribers something that is not kept in the log, such as what
// a terminal printed. One that does not keep up misses it. It returns how many
// will get it.
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

// Forget forgets what nobody who keeps up needs any more, and its memory.
func (l *Log) Forget() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.memory = memory{}
}

// recent is what came after a seq, at most limit events; ok is false if some of
// that is in the store alone. Who waits for more holds nothing meanwhile.
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

// wakeUp has w called whenever there is more, until stop is called.
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

// ask tells a subscription what is asked. The log is locked.
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

// admit lets a subscription hear of what is published, and of what is asked just now.
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

// How much of the log is kept in memory for subscribers. One that falls further
// behind reads from the store.
const (
	keepEvents = 8192
	keepBytes  = 4 << 20
)

// A memory is the end of the log: a ring.
type memory struct {
	ring  []domain.Event
	first int // where the oldest is
	count int
	bytes int
}

func size(e domain.Event) int { return e.Payload.Size() + 64 }

// add takes an event, and forgets the oldest where there is no room for it.
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

// end copies the last of all, at most limit of those from the one on that has
// behind events behind it or fewer.
func (m *memory) end(behind, limit int) []domain.Event {
	events := make([]domain.Event, min(behind, limit))
	for i := range events {
		events[i] = m.ring[(m.first+m.count-behind+i)%keepEvents]
	}
	return events
}

// unkeptMost is how many events that are not in the log wait for a subscriber.
const unkeptMost = 100

// An unkept is where a subscriber's events wait that are not in the log. It
// takes no room while there are none.
type unkept struct {
	mu    sync.Mutex // guards queue
	queue []domain.Event
}

// put queues an event, and reports whether there was room for it.
func (u *unkept) put(e domain.Event) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	if len(u.queue) >= unkeptMost {
		return false
	}
	u.queue = append(u.queue, e)
	return true
}

// take takes all that wait.
func (u *unkept) take() []domain.Event {
	u.mu.Lock()
	defer u.mu.Unlock()
	queue := u.queue
	u.queue = nil
	return queue
}
