package host

import (
	"sync"
	"time"
)

// A vacancy knows how long no client has been connected.
type vacancy struct {
	count func() int // how many connections there are
	ended func()     // called when the last one has ended; may be nil

	mu    sync.Mutex // guards the field below
	since time.Time  // when the last connection ended, or the process began
}

// connectionEnded notes that a connection has ended.
func (v *vacancy) connectionEnded() {
	v.mu.Lock()
	v.since = time.Now()
	v.mu.Unlock()
	if v.ended != nil && v.count() == 0 {
		v.ended()
	}
}

// lasts returns how long there has been no connection; 0 while there is one.
func (v *vacancy) lasts() time.Duration {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.count() > 0 {
		return 0
	}
	return time.Since(v.since)
}
