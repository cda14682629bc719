// Package witness is for tests: it holds what other goroutines say, so that a
// test can look at it meanwhile, and wait until it has heard what it looks for.
package witness

import (
	"bytes"
	"sync"
	"testing"
	"time"
)

// patience is how long a test waits for what has to come: long, since machines
// are slow at times, and nobody waits for it where it comes.
const patience = time.Minute

// A Witness is embedded in what is told things. Its lock guards what was told.
type Witness struct {
	sync.Mutex
	changed chan struct{} // closed and replaced at each change; nil while nobody waits
}

// Note changes what was told, and wakes whoever waits.
func (w *Witness) Note(change func()) {
	w.Lock()
	defer w.Unlock()
	change()
	if w.changed != nil {
		close(w.changed)
		w.changed = nil
	}
}

// Await waits until found, which is asked after each change, without the lock; why
// is what the test fails with.
func (w *Witness) Await(t testing.TB, found func() bool, why string) {
	t.Helper()
	timeout := time.After(patience)
	for {
		w.Lock()
		if w.changed == nil {
			w.changed = make(chan struct{})
		}
		changed := w.changed
		w.Unlock()
		if found() {
			return
		}
		select {
		case <-changed:
		case <-timeout:
			t.Fatal("it never came: " + why)
		}
	}
}

// A Text is a log, or output, that can be looked at while it is written. The zero
// value is empty.
type Text struct {
	mu  sync.Mutex // guards buf
	buf bytes.Buffer
}

// Write implements io.Writer.
func (t *Text) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.buf.Write(p)
}

// String is what was written so far.
func (t *Text) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.buf.String()
}
