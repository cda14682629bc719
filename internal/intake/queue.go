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

// Above highWater reports or highBytes of them waiting for a commit, executors are paused. They
// resume after the commit.
const (
	highWater = 4096
	highBytes = 16 << 20
)

// overfull is the multiple of these marks at which reporters block, for executors that do not
// pause.
const overfull = 4

// retryAfter is the delay before a transaction that could not begin is retried. Another process
// does not announce when it releases the store.
const retryAfter = 100 * time.Millisecond

// queue holds reports until they are stored. One transaction of the store's writer takes all that
// wait. It is requested at once, so a report is committed as soon as the writer is free, and before
// any later transaction.
type queue struct {
	store    Queue
	recorder *recorder
	throttle *throttle

	// adding is held from adding a report until the writer has been asked. Otherwise a reporter
	// whose report joins a request could end its turn before that request is made.
	adding sync.Mutex

	mu      sync.Mutex // guards the fields below
	taken   sync.Cond
	closed  bool
	waiting []report
	bytes   int
	asked   bool // a transaction is on its way
	paused  bool
	retry   *time.Timer // retries; nil if not needed
}

func newQueue(s Queue, w *recorder, t *throttle) *queue {
	q := &queue{store: s, recorder: w, throttle: t}
	q.taken.L = &q.mu
	return q
}

// add queues a report, and returns when the writer has the request for it.
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

// ask requests a transaction that takes the waiting reports.
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
			if recorded { // the transaction did not commit
				q.recorder.notRecorded(reports, err)
			}
			q.recorder.reportsLost(err)
		default: // the reports still wait, and paused executors with them
			q.recorder.delayed(err)
			q.askLater()
			return
		}
		q.resume()
	})
}

// askAgain retries failed reports at once, before the end of a turn is stored: afterwards no report
// can be added.
func (q *queue) askAgain() {
	q.mu.Lock()
	due := !q.closed && q.retry != nil && q.retry.Stop()
	q.mu.Unlock()
	if due {
		q.ask()
	}
}

// askLater retries after a delay.
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

// take returns the waiting reports and empties the queue.
func (q *queue) take() []report {
	q.mu.Lock()
	defer q.mu.Unlock()
	reports := q.waiting
	q.waiting, q.bytes, q.asked = nil, 0, false
	q.taken.Broadcast()
	return reports
}

// resume lets executors continue.
func (q *queue) resume() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.paused {
		q.paused = false
		q.throttle.set(false)
	}
}

// close releases waiting reporters and stops retries.
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
	// gapTimeout is how long an early report waits for those before it.
	gapTimeout = 200 * time.Millisecond
	// maxEarly limits the early reports of a turn, and maxEarlyBytes their total size.
	maxEarly      = 256
	maxEarlyBytes = 4 << 20
	// maxGaps limits the remembered gaps.
	maxGaps = 64
)

// order puts the reports of a turn into the order of their sequence numbers; executors may send them
// in any order. The lock of its Turn guards it.
type order struct {
	pass   func(report) // receives reports in order
	refuse func(error)  // receives the error of a report that came too late
	late   func()       // called when early reports have waited long enough; calls skipMissing

	last     int64 // sequence number of the last report passed on
	gaps     []gap // skipped sequence numbers, the latest last
	early    map[int64]report
	bytes    int             // of early
	timer    *time.Timer     // calls late; nil if none is early
	waiters  []chan struct{} // closed when none is early
	finished bool
}

// gap is a range of sequence numbers.
type gap struct{ from, to int64 }

// errTooLate is the error of a report whose gap was skipped.
var errTooLate = errors.New("it came after others that had to wait for it")

// take handles a report with its sequence number, counted from 1; 0 means unnumbered. It drops a
// repeated report and refuses one whose gap was skipped. An early report waits a moment for those
// before it.
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

// wait keeps an early report.
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

// passNext passes on the early reports that are next now.
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

// skipMissing passes on all early reports: the missing ones do not arrive, or arrive too late.
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

// finish passes on all early reports and stops their waiting.
func (o *order) finish() {
	o.finished = true
	o.skipMissing()
}

// settled returns a channel that is closed when no report received so far is waiting.
func (o *order) settled() <-chan struct{} {
	done := make(chan struct{})
	if len(o.early) == 0 {
		close(done)
	} else {
		o.waiters = append(o.waiters, done)
	}
	return done
}

// stopTimer stops the timer and wakes waiters if no report is early.
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

// Executor can pause and resume its reports.
type Executor interface {
	PauseNotifications(ctx context.Context) error
	ResumeNotifications(ctx context.Context) error
}

// throttle pauses and resumes executors. One goroutine per executor makes the calls, one after the
// other, and sends only the latest state. Its methods may be called from any goroutine.
type throttle struct {
	ctx context.Context // ends with the hub
	log *slog.Logger

	mu     sync.Mutex // guards the fields below
	paused bool
	links  map[*link]struct{}
}

// link is the connection to one executor.
type link struct {
	executor Executor
	ctx      context.Context
	cancel   context.CancelFunc

	// The throttle's mu guards these.
	paused   bool          // the executor's state
	unsure   bool          // the last call failed, so its state is unknown
	finished chan struct{} // closed when its goroutine has ended; nil without one
}

// Delays between retries of a failed pause or resume.
const (
	firstRetry   = 50 * time.Millisecond
	longestRetry = time.Second
)

func newThrottle(ctx context.Context, log *slog.Logger) *throttle {
	return &throttle{ctx: ctx, log: log, links: make(map[*link]struct{})}
}

// set pauses or resumes all executors.
func (t *throttle) set(paused bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.paused = paused
	for l := range t.links {
		t.update(l)
	}
}

// join adds an executor, which is not paused yet, until leave is called. Call leave before
// releasing its lease; after it returns, the executor gets no more calls.
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

// update starts an executor's goroutine if its state must change and none runs. mu is held.
func (t *throttle) update(l *link) {
	if l.finished == nil && (l.paused != t.paused || l.unsure) {
		l.finished = make(chan struct{})
		go t.tell(l)
	}
}

// tell sends the current state to an executor until the executor has confirmed it. leave waits for
// tell.
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
		t.log.Debug("cannot pause or resume an executor", "pause", paused, "err", err)
		select {
		case <-time.After(retry):
		case <-l.ctx.Done():
		}
		retry = min(2*retry, longestRetry)
	}
}
