package testkit

import (
	"bytes"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// A Witness collects the reports of other goroutines, so that a test can wait for a value.

// patience is how long a test waits for a value. It is long because machines may be slow. A test that
// passes does not wait for it.
const patience = time.Minute

// A Witness is embedded in a type that receives reports. Its lock guards them.
type Witness struct {
	sync.Mutex
	changed chan struct{} // closed and replaced at each change; nil while no goroutine waits
}

// Note changes the reports, and wakes waiting goroutines.
func (w *Witness) Note(change func()) {
	w.Lock()
	defer w.Unlock()
	change()
	if w.changed != nil {
		close(w.changed)
		w.changed = nil
	}
}

// Await waits until found returns true. It calls found after each change, without the lock. If found
// never does, the test fails with why.
func (w *Witness) Await(t testing.TB, found func() bool, why string) {
	t.Helper()
	if !w.hears(found) {
		t.Fatal("it never came: " + why)
	}
}

// hears reports whether found returns true before patience ends.
func (w *Witness) hears(found func() bool) bool {
	timeout := time.After(patience)
	for {
		w.Lock()
		if w.changed == nil {
			w.changed = make(chan struct{})
		}
		changed := w.changed
		w.Unlock()
		if found() {
			return true
		}
		select {
		case <-changed:
		case <-timeout:
			return false
		}
	}
}

// A Text is a log or output that can be read while it is written. The zero value is empty.
type Text struct {
	written Witness // its lock guards buf
	buf     bytes.Buffer
}

func (t *Text) Write(p []byte) (n int, err error) {
	t.written.Note(func() { n, err = t.buf.Write(p) })
	return n, err
}

// String returns the text that was written so far.
func (t *Text) String() string {
	t.written.Lock()
	defer t.written.Unlock()
	return t.buf.String()
}

// Await waits until found returns true for the text so far. If it never does, the test fails with why.
func (t *Text) Await(tb testing.TB, found func(text string) bool, why string) {
	tb.Helper()
	if !t.written.hears(func() bool { return found(t.String()) }) {
		tb.Fatalf("it never came: %s; there is:\n%s", why, t)
	}
}

// AwaitPart waits until a text is a part of what was written.
func (t *Text) AwaitPart(tb testing.TB, part string) {
	tb.Helper()
	t.Await(tb, func(text string) bool { return strings.Contains(text, part) }, strconv.Quote(part))
}

// Program writes a program or script that the test will run, and returns its path. It prevents forks meanwhile: until a
// child calls exec it has this process's open files, and a file that is open for writing cannot be run
// ("text file busy").
func Program[T string | []byte](t testing.TB, path string, text T) string {
	t.Helper()
	syscall.ForkLock.RLock()
	err := os.WriteFile(path, []byte(text), 0o700)
	syscall.ForkLock.RUnlock()
	if err != nil {
		t.Fatal(err)
	}
	return path
}
