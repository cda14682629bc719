package intake

import (
	"errors"
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
