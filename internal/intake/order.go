package intake

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"
)

const (
	// gapTimeout is how long a report that came early waits for those before it.
	gapTimeout = 200 * time.Millisecond
	// maxEarly is how many of a run wait, and maxEarlyBytes how long they are
	// together.
	maxEarly      = 256
	maxEarlyBytes = 4 << 20
	// maxGaps is how many gaps are remembered.
	maxGaps = 64
)

// An order brings the reports of a run into the order of their sequence numbers;
// an executor may send them as it likes. It is guarded by the lock of its Run.
type order struct {
	pass   func(report) // takes them in their order
	refuse func(error)  // is told of one that came too late
	late   func()       // is called when early ones have waited for long enough; calls skipMissing

	last     int64 // the sequence of the last report that was passed on
	gaps     []gap // what was missing when later ones were passed on, the latest last
	early    map[int64]report
	bytes    int             // of early
	timer    *time.Timer     // calls late; nil while none is early
	waiters  []chan struct{} // closed when none is early any more
	finished bool
}

// A gap is a row of sequence numbers.
type gap struct{ from, to int64 }

// errTooLate is why a report is refused that came after its gap was skipped.
var errTooLate = errors.New("it came after others that had to wait for it")

// take takes a report with its sequence number, which counts from 1; 0 is none.
// One that came before is dropped, and one whose gap was skipped is refused. One
// that comes early waits a moment for those before it.
func (o *order) take(sequence int64, what report) {
	switch {
	case sequence <= 0:
		o.pass(what)
	case sequence <= o.last:
		if slices.ContainsFunc(o.gaps, func(g gap) bool { return g.from <= sequence && sequence <= g.to }) {
			o.refuse(fmt.Errorf("report %d: %w", sequence, errTooLate))
		}
	case sequence > o.last+1:
		o.wait(sequence, what)
	default:
		o.last = sequence
		o.pass(what)
		o.passNext()
	}
}

// wait keeps a report that came early.
func (o *order) wait(sequence int64, what report) {
	if _, there := o.early[sequence]; there {
		return
	}
	if o.early == nil {
		o.early = make(map[int64]report)
	}
	o.early[sequence] = what
	o.bytes += what.size()
	switch {
	case o.finished, len(o.early) > maxEarly, o.bytes > maxEarlyBytes:
		o.skipMissing()
	case o.timer == nil:
		o.timer = time.AfterFunc(gapTimeout, o.late)
	}
}

// passNext passes on what waited for the report that was passed on last.
func (o *order) passNext() {
	for len(o.early) > 0 {
		next, there := o.early[o.last+1]
		if !there {
			return
		}
		delete(o.early, o.last+1)
		o.bytes -= next.size()
		o.last++
		o.pass(next)
	}
	o.stopTimer()
}

// skipMissing passes on everything that waits: what is missing does not come, or
// comes too late.
func (o *order) skipMissing() {
	for _, sequence := range slices.Sorted(maps.Keys(o.early)) {
		if sequence > o.last+1 {
			o.gaps = append(o.gaps, gap{o.last + 1, sequence - 1})
			o.gaps = o.gaps[max(0, len(o.gaps)-maxGaps):]
		}
		o.last = sequence
		o.pass(o.early[sequence])
	}
	clear(o.early)
	o.bytes = 0
	o.stopTimer()
}

// finish lets nothing wait any more.
func (o *order) finish() {
	o.finished = true
	o.skipMissing()
}

// settled is closed when none of the reports waits any more that came so far.
func (o *order) settled() <-chan struct{} {
	done := make(chan struct{})
	if len(o.early) == 0 {
		close(done)
	} else {
		o.waiters = append(o.waiters, done)
	}
	return done
}

// stopTimer ends the timer when nothing waits, and lets those go on who wait for that.
func (o *order) stopTimer() {
	for _, done := range o.waiters {
		close(done)
	}
	o.waiters = nil
	if o.timer != nil {
		o.timer.Stop()
		o.timer = nil
	}
}
