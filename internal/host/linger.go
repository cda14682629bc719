package host

import (
	"sync"
	"time"
)

// A linger tells when nobody is there any more whom a process serves: the editor
// that started it has gone, and the last of those who came to its sockets.
type linger struct {
	count func() int // how many connections there are, the editor's among them

	mu    sync.Mutex // guards the fields below
	gone  bool       // the editor has
	over  bool
	since time.Time     // when the last connection ended, or the process began
	alone chan struct{} // closed when nobody is there
}

// editorGone notes that the editor has gone, and reports whether others are there.
func (l *linger) editorGone() (others bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.gone = true
	l.look()
	return !l.over
}

// connectionEnded notes that a connection has ended.
func (l *linger) connectionEnded() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.since = time.Now()
	l.look()
}

// vacantFor returns how long there has been no connection; 0 while there is one.
func (l *linger) vacantFor() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.count() > 0 {
		return 0
	}
	return time.Since(l.since)
}

// others is how many are connected beside the editor.
func (l *linger) others() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := l.count()
	if !l.gone {
		n--
	}
	return max(n, 0)
}

// deserted reports whether nobody is there any more whom the process serves.
func (l *linger) deserted() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.over
}

// look looks whether somebody is there; l.mu is held.
func (l *linger) look() {
	if l.gone && !l.over && l.count() == 0 {
		l.over = true
		close(l.alone)
	}
}
