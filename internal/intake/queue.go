package intake

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/duet-rpc/duet-rpc/internal/store"
)

// Beyond highWater reports, or highBytes of them, that wait for their commit,
// executors are told to pause; once those are committed they go on.
const (
	highWater = 4096
	highBytes = 16 << 20
)

// overfull is how many times the water marks may be passed by executors that
// do not pause when they are told: then whoever reports waits.
const overfull = 4

// retryAfter is how long after a transaction could not begin it is asked for
// again: nothing tells when another process lets go of the store.
const retryAfter = 100 * time.Millisecond

// A queue is where reports wait. One operation of the store's writer takes all
// that are there, so that they share a transaction, and it is asked for at once:
// an event is committed and announced as soon as the writer gets to it, and
// before anything that is asked of the writer later.
type queue struct {
	store    Queue
	recorder *recorder
	throttle *throttle

	// adding is held by who adds a report until the store was asked for it, so that
	// nobody whose report goes along with others goes on before, and asks the
	// writer for the end of its run first.
	adding sync.Mutex

	mu      sync.Mutex // guards the fields below
	taken   sync.Cond
	closed  bool
	waiting []report
	bytes   int
	asked   bool // an operation is on its way
	paused  bool
	retry   *time.Timer // asks again; nil while that is not needed
}

func newQueue(s Queue, w *recorder, t *throttle) *queue {
	q := &queue{store: s, recorder: w, throttle: t}
	q.taken.L = &q.mu
	return q
}

// add takes a report, and returns when the writer knows of it.
func (q *queue) add(r report) {
	q.adding.Lock()
	defer q.adding.Unlock()
	q.mu.Lock()
	for !q.closed && (len(q.waiting) >= overfull*highWater || q.bytes >= overfull*highBytes) {
		q.taken.Wait()
	}
	q.waiting = append(q.waiting, r)
	q.bytes += r.size()
	ask := !q.asked
	q.asked = true
	if !q.paused && (len(q.waiting) >= highWater || q.bytes >= highBytes) {
		q.paused = true
		q.throttle.set(true)
	}
	q.mu.Unlock()
	if ask {
		q.ask()
	}
}

// ask has the store's writer take what waits.
func (q *queue) ask() {
	var reports []report
	began, recorded := false, false
	q.store.Enqueue(func(t store.Tx) (err error) {
		began = true
		reports = q.take()
		defer func() {
			if !recorded {
				q.recorder.notRecorded(reports, err)
			}
		}()
		err = q.recorder.recordAll(t, reports)
		recorded = err == nil
		return err
	}, func(err error) {
		switch {
		case err == nil, errors.Is(err, store.ErrClosed):
		case began:
			if recorded { // in a transaction that was not committed
				q.recorder.notRecorded(reports, err)
			}
			q.recorder.reportsLost(err)
		default: // they still wait, and so do executors that have paused
			q.recorder.delayed(err)
			q.askLater()
			return
		}
		q.resume()
	})
}

// askAgain asks at once for what could not be kept so far, before the end of a run
// is: that makes room for no report any more.
func (q *queue) askAgain() {
	q.mu.Lock()
	due := !q.closed && q.retry != nil && q.retry.Stop()
	q.mu.Unlock()
	if due {
		q.ask()
	}
}

// askLater asks again in a moment.
func (q *queue) askLater() {
	q.mu.Lock()
	defer q.mu.Unlock()
	switch {
	case q.closed:
	case q.retry == nil:
		q.retry = time.AfterFunc(retryAfter, q.ask)
	default:
		q.retry.Reset(retryAfter)
	}
}

// take hands out what waits.
func (q *queue) take() []report {
	q.mu.Lock()
	defer q.mu.Unlock()
	reports := q.waiting
	q.waiting, q.bytes, q.asked = nil, 0, false
	q.taken.Broadcast()
	return reports
}

// resume lets executors go on.
func (q *queue) resume() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.paused {
		q.paused = false
		q.throttle.set(false)
	}
}

// close keeps nobody waiting any more, and asks for no transaction again.
func (q *queue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	if q.retry != nil {
		q.retry.Stop()
	}
	q.taken.Broadcast()
}

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

// An Executor is what is told to pause its reports, and to resume them.
type Executor interface {
	PauseNotifications(ctx context.Context) error
	ResumeNotifications(ctx context.Context) error
}

// A throttle tells executors to pause and to resume. Each of them is told by one
// goroutine, one thing after the other, and what counts is the last: a slow one
// misses what was taken back meanwhile. Its methods may be called from any
// goroutine.
type throttle struct {
	ctx context.Context // ends with the hub
	log *slog.Logger

	mu     sync.Mutex // guards the fields below
	paused bool
	links  map[*link]struct{}
}

// A link is to one executor.
type link struct {
	executor Executor
	ctx      context.Context
	cancel   context.CancelFunc

	// The throttle's mu guards these.
	paused   bool          // what the executor knows
	unsure   bool          // whether it knows that is not sure: telling it failed
	finished chan struct{} // closed when its goroutine has ended; nil while there is none
}

// Between tries to tell an executor what it did not take.
const (
	firstRetry   = 50 * time.Millisecond
	longestRetry = time.Second
)

func newThrottle(ctx context.Context, log *slog.Logger) *throttle {
	return &throttle{ctx: ctx, log: log, links: make(map[*link]struct{})}
}

// set says whether executors are to pause.
func (t *throttle) set(paused bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.paused = paused
	for l := range t.links {
		t.update(l)
	}
}

// join adds an executor, which does not pause so far, until leave is called,
// before its lease is released: it is told nothing more when leave returns.
func (t *throttle) join(e Executor) (leave func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	l := &link{executor: e}
	l.ctx, l.cancel = context.WithCancel(t.ctx)
	t.links[l] = struct{}{}
	t.update(l)
	return func() { t.leave(l) }
}

func (t *throttle) leave(l *link) {
	t.mu.Lock()
	delete(t.links, l)
	l.cancel()
	finished := l.finished
	t.mu.Unlock()
	if finished != nil {
		<-finished
	}
}

// update starts the goroutine that tells an executor, where there is something to
// tell and it does not run; mu is held.
func (t *throttle) update(l *link) {
	if l.finished == nil && (l.paused != t.paused || l.unsure) {
		l.finished = make(chan struct{})
		go t.tell(l)
	}
}

// tell sends an executor the present state, paused or not, again and again until
// it has confirmed the one that holds by then. leave waits for it.
func (t *throttle) tell(l *link) {
	for retry := firstRetry; ; {
		t.mu.Lock()
		paused := t.paused
		if l.ctx.Err() != nil || l.paused == paused && !l.unsure {
			close(l.finished)
			l.finished = nil
			t.mu.Unlock()
			return
		}
		t.mu.Unlock()
		send := l.executor.ResumeNotifications
		if paused {
			send = l.executor.PauseNotifications
		}
		err := send(l.ctx)
		t.mu.Lock()
		l.paused, l.unsure = paused, err != nil
		t.mu.Unlock()
		if err == nil {
			retry = firstRetry
			continue
		}
		t.log.Debug("an executor was not told to pause, or to go on", "pause", paused, "err", err)
		select {
		case <-time.After(retry):
		case <-l.ctx.Done():
		}
		retry = min(2*retry, longestRetry)
	}
}
