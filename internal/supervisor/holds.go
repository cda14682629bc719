package supervisor

import (
	"context"
	"sync"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
)

// holds are the leases that hold up one executor, which may have several. It
// pauses while there is one. The zero value has none.
type holds struct {
	telling sync.Mutex // held while the executor is told, so that it is told in order

	mu     sync.Mutex // guards the fields below
	by     map[*lease]struct{}
	paused bool // what the executor was told last
	unsure bool // it may not have been
}

// set notes whether a lease holds the executor up, and tells it.
func (h *holds) set(ctx context.Context, x catalog.Executor, l *lease, hold bool) error {
	h.mu.Lock()
	if h.by == nil {
		h.by = make(map[*lease]struct{})
	}
	if hold && !l.left {
		h.by[l] = struct{}{}
	} else {
		delete(h.by, l)
	}
	h.mu.Unlock()
	return h.tell(ctx, x)
}

// leave ends what a lease holds up, for good, and reports whether the executor
// is to be told something.
func (h *holds) leave(l *lease) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	l.left = true
	delete(h.by, l)
	return h.unsure || h.paused != (len(h.by) > 0)
}

// tell tells the executor what holds now, unless it was told that last.
func (h *holds) tell(ctx context.Context, x catalog.Executor) error {
	h.telling.Lock()
	defer h.telling.Unlock()
	h.mu.Lock()
	pause := len(h.by) > 0
	known := pause == h.paused && !h.unsure
	h.mu.Unlock()
	if known {
		return nil
	}
	send := x.ResumeNotifications
	if pause {
		send = x.PauseNotifications
	}
	err := send(ctx)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.paused, h.unsure = pause, err != nil
	return err
}
