package hub

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/redact"
)

const (
	// earlyPatience is how long a report that came early waits for those
	// before it.
	earlyPatience = 200 * time.Millisecond
	// earlyMost is how many of a run wait, and earlyBytes how long they are
	// together.
	earlyMost  = 256
	earlyBytes = 4 << 20
)

// A reporting brings the reports of one run into their order, on their way to
// the intake, and takes keys out of them that the agent was given. An executor
// may send them as it likes.
type reporting struct {
	hub     *Hub
	refused func(error) // is told of a report that is not taken

	mu    sync.Mutex // guards the fields below, and keeps the order
	last  int64      // the sequence of the last report that went on
	given []span     // those before it that were given up, the latest last
	early map[int64]report
	bytes int         // of early
	hurry *time.Timer // lets early ones go on; nil while there are none
	// stream takes the keys of the run's thread out of what its agent writes. held
	// is the report to which belongs what it holds back: the end of a text that
	// could be the beginning of a key.
	stream redact.Stream
	held   *report
}

// mostGiven is how many rows of reports that were given up are remembered.
const mostGiven = 64

// errTooLate is why a report is refused that was given up before it came.
var errTooLate = errors.New("it came after others that had to wait for it")

// take takes a report with its sequence number, which counts from 1; 0 is none.
// One that came before is dropped, and one that was given up is refused. One that comes early waits a moment for
// those before it.
func (r *reporting) take(sequence int64, what report) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case sequence <= 0:
		r.pass(what)
	case sequence <= r.last:
		if slices.ContainsFunc(r.given, func(s span) bool { return s.from <= sequence && sequence <= s.to }) {
			r.refused(fmt.Errorf("report %d: %w", sequence, errTooLate))
		}
	case sequence > r.last+1:
		r.hold(sequence, what)
	default:
		r.last = sequence
		r.pass(what)
		r.catchUp()
	}
}

// hold keeps a report that came early; mu is held.
func (r *reporting) hold(sequence int64, what report) {
	if _, there := r.early[sequence]; there {
		return
	}
	if r.early == nil {
		r.early = make(map[int64]report)
	}
	r.early[sequence] = what
	r.bytes += what.size()
	switch {
	case len(r.early) > earlyMost || r.bytes > earlyBytes:
		r.goOn()
	case r.hurry == nil:
		r.hurry = time.AfterFunc(earlyPatience, r.flush)
	}
}

// catchUp lets go on what waited for the report that went on last; mu is held.
func (r *reporting) catchUp() {
	for len(r.early) > 0 {
		next, there := r.early[r.last+1]
		if !there {
			return
		}
		delete(r.early, r.last+1)
		r.bytes -= next.size()
		r.last++
		r.pass(next)
	}
	r.calm()
}

// goOn lets everything go on that waits: what is missing does not come, or
// comes too late; mu is held.
func (r *reporting) goOn() {
	for _, sequence := range slices.Sorted(maps.Keys(r.early)) {
		if sequence > r.last+1 {
			r.given = append(r.given, span{r.last + 1, sequence - 1})
			r.given = r.given[max(0, len(r.given)-mostGiven):]
		}
		r.last = sequence
		r.pass(r.early[sequence])
	}
	clear(r.early)
	r.bytes = 0
	r.calm()
}

// calm ends the haste; mu is held, and nothing waits.
func (r *reporting) calm() {
	if r.hurry != nil {
		r.hurry.Stop()
		r.hurry = nil
	}
}

// flush lets everything go on that waits, at the latest when the run ends.
func (r *reporting) flush() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.goOn()
	r.letGo()
}

// pass gives a report to the intake, without keys; mu is held.
func (r *reporting) pass(what report) {
	if r.stream.Secrets.None() {
		r.hub.intake.add(what)
		return
	}
	switch what.kind {
	case catalog.EventContentDelta, catalog.EventThinkingChunk:
		r.passText(what)
		return
	case catalog.EventUsage, catalog.EventMode, catalog.EventNativeSession, catalog.EventProcess, catalog.EventPermissionTaken: // they end no message
	case catalog.EventFileChange: // the project's files are what they are
		r.letGo()
	default:
		r.letGo()
		what.data = r.stream.Secrets.JSON(what.data)
	}
	r.hub.intake.add(what)
}

// passText is pass for a piece of a message. A key may be cut in two by the
// border of pieces, so an end that could be the beginning of one is held back, and
// by the border of messages, see [redact.Stream].
func (r *reporting) passText(what report) {
	if r.held != nil && !r.held.goesOnWith(what) {
		r.letGo()
	}
	shown := r.stream.Add(what.delta.Delta.Text)
	if r.held = nil; r.stream.Holds() {
		rest := what
		r.held = &rest
	}
	if what.delta.Delta.Text = shown; shown != "" {
		r.hub.intake.add(what)
	}
}

// goesOnWith reports whether a piece of a message belongs to the same one as
// the next piece.
func (r *report) goesOnWith(next report) bool {
	a, b := r.delta.MessageID, next.delta.MessageID
	return r.kind == next.kind && (a == b || a == "" || b == "")
}

// letGo lets go what was held back, unless it is too much of a key: the message ends;
// mu is held.
func (r *reporting) letGo() {
	if r.held == nil {
		return
	}
	what := *r.held
	r.held = nil
	if what.delta.Delta.Text = r.stream.Border(); what.delta.Delta.Text != "" {
		r.hub.intake.add(what)
	}
}

// endMessage lets go what was held back before something else than a report
// ends the message.
func (r *reporting) endMessage() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.letGo()
}

// A span is a row of sequence numbers, both ends included.
type span struct{ from, to int64 }
