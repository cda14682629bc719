package hub

import (
	"sync"
	"time"

	"github.com/duet-rpc/duet-rpc/internal/domain"
)

// besideMost is how many events that are not in the log wait for a subscriber.
const besideMost = 100

// A beside is where a subscriber's events wait that are not in the log. It takes
// no room while there are none.
type beside struct {
	mu    sync.Mutex // guards queue
	queue []Notice
}

// put queues an event, and reports whether there was room for it.
func (b *beside) put(n Notice) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.queue) >= besideMost {
		return false
	}
	b.queue = append(b.queue, n)
	return true
}

// take takes all that wait.
func (b *beside) take() []Notice {
	b.mu.Lock()
	defer b.mu.Unlock()
	queue := b.queue
	b.queue = nil
	return queue
}

// addBeside lets a subscription hear of what is not in the log.
func (h *Hub) addBeside(s *Subscription) (remove func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.besides == nil {
		h.besides = make(map[*Subscription]struct{})
	}
	h.besides[s] = struct{}{}
	return func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		delete(h.besides, s)
	}
}

// announceBeside tells subscribers something that is not kept in the log,
// such as what a terminal printed. One that does not keep up misses it. It
// returns how many were told.
func (h *Hub) announceBeside(e domain.Event) int {
	e.Time = time.Now()
	told := 0
	h.mu.Lock()
	defer h.mu.Unlock()
	for s := range h.besides {
		if s.wants(e) && s.beside.put(Notice{Event: e}) {
			told++
			s.watcher.woken()
		}
	}
	return told
}
