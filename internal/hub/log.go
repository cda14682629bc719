package hub

import (
	"context"
	"slices"
	"sync"

	"github.com/duet-rpc/duet-rpc/internal/store"

	"github.com/duet-rpc/duet-rpc/internal/domain"
)

// How much of the log is kept in memory for subscribers. One that falls
// further behind reads from the store.
const (
	keepEvents = 8192
	keepBytes  = 4 << 20
)

// An eventLog is the end of the log in memory, and who wants to hear of more.
type eventLog struct {
	mu       sync.Mutex     // guards the fields below
	recent   []domain.Event // a ring: the oldest is at first
	first    int
	count    int
	bytes    int
	lastSeq  int64
	watchers map[*watcher]struct{}
}

// A watcher is told that there is more, or is given each event at once.
type watcher struct {
	wake chan struct{}
	each func(domain.Event)
}

// woken tells that there is more.
func (w *watcher) woken() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

func newEventLog() *eventLog {
	return &eventLog{watchers: make(map[*watcher]struct{})}
}

func size(e domain.Event) int { return e.Payload.Size() + 64 }

// add takes events that were committed, in order.
func (l *eventLog) add(events []domain.Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.recent == nil {
		l.recent = make([]domain.Event, keepEvents)
	}
	for _, e := range events {
		for l.count == keepEvents || l.count > 0 && l.bytes+size(e) > keepBytes {
			l.bytes -= size(l.recent[l.first])
			l.recent[l.first] = domain.Event{}
			l.first = (l.first + 1) % keepEvents
			l.count--
		}
		l.recent[(l.first+l.count)%keepEvents] = e
		l.count++
		l.bytes += size(e)
		l.lastSeq = e.Seq
	}
	for w := range l.watchers {
		if w.each != nil {
			for _, e := range events {
				w.each(e)
			}
			continue
		}
		w.woken()
	}
}

// after copies what came after a seq, at most limit events; ok is false if some
// of that is in the store alone. Who waits for more holds nothing meanwhile.
func (l *eventLog) after(seq int64, limit int) (events []domain.Event, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if seq >= l.lastSeq {
		return nil, true
	}
	oldest := l.lastSeq - int64(l.count) + 1
	if seq+1 < oldest {
		return nil, false
	}
	n := int(min(l.lastSeq-seq, int64(limit)))
	skip := int(seq + 1 - oldest)
	events = make([]domain.Event, n)
	for i := range events {
		events[i] = l.recent[(l.first+skip+i)%keepEvents]
	}
	return events, true
}

// rest forgets what nobody who keeps up needs any more, and its memory.
func (l *eventLog) rest() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.recent, l.first, l.count, l.bytes = nil, 0, 0, 0
}

// last is the seq of the last event that was announced.
func (l *eventLog) last() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lastSeq
}

// start sets where the log of the store ends.
func (l *eventLog) start(seq int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lastSeq = max(l.lastSeq, seq)
}

func (l *eventLog) watch(w *watcher) (stop func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.watchers[w] = struct{}{}
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.watchers, w)
	}
}

// committed is called by the writer after each commit.
func (h *Hub) committed(events []domain.Event) {
	h.freshen(events)
	h.events.add(events)
}

// freshen keeps the sessions in memory true to what was committed.
func (h *Hub) freshen(events []domain.Event) {
	for _, e := range events {
		if e.Run == 0 {
			continue
		}
		_, known := h.known(e.Run)
		if known && e.Payload.Kind() != domain.EventRunState {
			continue
		}
		if s, err := h.store.Session(h.ctx, e.Run); err == nil {
			h.remember(s)
		}
	}
}

// Watch calls f with every event after its commit, in order, with the session
// that it belongs to (as it is known now; the zero Session if there is none).
// f runs in the writer's goroutine: it must not block and not call the hub.
func (h *Hub) Watch(f func(domain.Event, domain.Session)) (stop func()) {
	return h.events.watch(&watcher{each: func(e domain.Event) {
		s, ok := h.known(e.Run)
		if !ok && e.Run != 0 { // there were too many others since
			s, _ = h.store.Session(h.ctx, e.Run)
		}
		f(e, s)
	}})
}

// Began is the number of the last event that the hub before this one announced:
// what it left behind is dealt with after it.
func (h *Hub) Began() int64 { return h.began }

// LastSeq is the number of the last event that was announced.
func (h *Hub) LastSeq() int64 { return h.events.last() }

// Replay calls f with the events of some kinds that came after since, up to one,
// each with the session it belongs to, as it is now; it ends when f returns
// false. Unlike Watch it reads the store, in the caller's goroutine. What of it is
// damaged it leaves out.
func (h *Hub) Replay(ctx context.Context, kinds []domain.EventKind, since, upTo int64, f func(domain.Event, domain.Session) bool) error {
	for since < upTo {
		page, err := h.readLog(ctx, since)
		if err != nil {
			return stored(err)
		}
		for _, e := range page.events {
			if since = e.Seq; since > upTo {
				return nil
			}
			if e.Run == 0 || !slices.Contains(kinds, e.Payload.Kind()) {
				continue
			}
			s, err := h.store.Session(ctx, e.Run)
			if store.IsDamaged(err) { // the next one may not be
				continue
			}
			if err != nil {
				return stored(err)
			}
			if !f(e, s) {
				return nil
			}
		}
		if since = max(since, page.lostTo); page.end {
			return nil
		}
	}
	return nil
}
