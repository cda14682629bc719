package preview

import (
	"sync"

	"github.com/duet-rpc/duet-rpc/internal/domain"
)

// A Told is what whoever watches a preview is told: one of its fields is set.
type Told struct {
	Navigate string // to this address
	Refresh  bool
	Said     *domain.PageMessage
}

// A Watcher is told what becomes of a preview. Its channel is buffered; what finds no room
// there is lost.
type Watcher struct {
	// C gets what is told.
	C     <-chan Told
	c     chan Told
	shows bool // it has a browser; guarded by the audience's lock
	hears bool // it wants to know what pages say; guarded by the audience's lock
}

// waiting is how much is kept for a watcher that does not look.
const waiting = 200

// audience are the clients that watch.
type audience struct {
	mu       sync.Mutex // guards the field below, and those of watchers
	watchers map[*Watcher]bool
}

// Watch makes a Watcher, which is told nothing until it is known that it shows the preview
// or wants to hear.
func (a *audience) Watch() *Watcher {
	c := make(chan Told, waiting)
	w := &Watcher{C: c, c: c}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.watchers == nil {
		a.watchers = make(map[*Watcher]bool)
	}
	a.watchers[w] = true
	return w
}

// Leave takes a Watcher out.
func (a *audience) Leave(w *Watcher) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.watchers, w)
}

// Shows notes that a client shows the preview: it is told where to go.
func (a *audience) Shows(w *Watcher) {
	a.mu.Lock()
	defer a.mu.Unlock()
	w.shows = true
}

// Hears notes whether a client is told what pages say.
func (a *audience) Hears(w *Watcher, yes bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	w.hears = yes
}

// tell tells those whom it is for, and counts them.
func (a *audience) tell(t Told) (n int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for w := range a.watchers {
		if t.Said != nil && !w.hears || t.Said == nil && !w.shows {
			continue
		}
		select {
		case w.c <- t:
			n++
		default:
		}
	}
	return n
}
