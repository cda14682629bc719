package eventlog

import (
	"sync"

	"github.com/duet-rpc/duet-rpc/internal/domain"
)

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
