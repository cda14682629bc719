package supervisor

import (
	"context"
	"sync"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
)

// pauses are the leases that want one executor, which may have several, to
// pause. It does while there is one. The zero value has none.
type pauses struct {
	telling sync.Mutex // held while the executor is told, so that it is told in order

	mu     sync.Mutex // guards the fields below
	by     map[*lease]struct{}
	paused bool // what the executor was told last
	unsure bool // it may not have been
}

// set notes whether a lease wants the executor to pause, and tells it.
func (p *pauses) set(ctx context.Context, x catalog.Executor, l *lease, pause bool) error {
	p.mu.Lock()
	if p.by == nil {
		p.by = make(map[*lease]struct{})
	}
	if pause && !l.released {
		p.by[l] = struct{}{}
	} else {
		delete(p.by, l)
	}
	p.mu.Unlock()
	return p.tell(ctx, x)
}

// leave ends the pause of a lease, for good, and reports whether the executor
// is to be told something.
func (p *pauses) leave(l *lease) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	l.released = true
	delete(p.by, l)
	return p.unsure || p.paused != (len(p.by) > 0)
}

// tell tells the executor what counts now, unless it was told that last.
func (p *pauses) tell(ctx context.Context, x catalog.Executor) error {
	p.telling.Lock()
	defer p.telling.Unlock()
	p.mu.Lock()
	pause := len(p.by) > 0
	known := pause == p.paused && !p.unsure
	p.mu.Unlock()
	if known {
		return nil
	}
	send := x.ResumeNotifications
	if pause {
		send = x.PauseNotifications
	}
	err := send(ctx)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.paused, p.unsure = pause, err != nil
	return err
}
