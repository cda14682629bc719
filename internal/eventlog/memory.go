package eventlog

import "github.com/duet-rpc/duet-rpc/internal/domain"

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
