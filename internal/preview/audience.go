package preview

import (
	"sync"

	"github.com/duet-rpc/duet-rpc/internal/domain"
)

// Update is an event for a watcher of a preview. One of its fields is set.
type Update struct {
	Navigate string // navigate to this address
	Refresh  bool
	Said     *domain.PageMessage
}

// Watcher receives the events of a preview. Its channel is buffered; events beyond the buffer are
// lost.
type Watcher struct {
	// C delivers the events.
	C     <-chan Update
	c     chan Update
	shows bool // has a browser; guarded by the audience's lock
	hears bool // receives page messages; guarded by the audience's lock
}

// waiting is the size of a watcher's buffer.
const waiting = 200

// audience is the set of watchers.
type audience struct {
	mu       sync.Mutex // guards watchers and their fields
	watchers map[*Watcher]bool
}

// Watch returns a Watcher. It receives nothing before Shows or Hears.
func (a *audience) Watch() *Watcher {
	c := make(chan Update, waiting)
	w := &Watcher{C: c, c: c}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.watchers == nil {
		a.watchers = make(map[*Watcher]bool)
	}
	a.watchers[w] = true
	return w
}

// Leave removes a Watcher.
func (a *audience) Leave(w *Watcher) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.watchers, w)
}

// Shows marks a client as showing the preview, so that it receives navigation.
func (a *audience) Shows(w *Watcher) {
	a.mu.Lock()
	defer a.mu.Unlock()
	w.shows = true
}

// Hears sets whether a client receives page messages.
func (a *audience) Hears(w *Watcher, yes bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	w.hears = yes
}

// tell sends an event to the matching watchers and returns their number.
func (a *audience) tell(t Update) (n int) {
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
