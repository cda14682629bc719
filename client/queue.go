package client

import "sync"

// A queue holds work for the handlers. One goroutine runs it, in order; adding to the queue
// never waits.
type queue struct {
	most int // items

	mu     sync.Mutex // guards the fields below
	items  []item
	size   int               // of all items, in bytes
	missed []chan<- struct{} // those whose put failed since the queue was empty
	lost   int64             // dropped items that are not fetched again
	closed bool
	wake   chan struct{} // holds one token when there may be work
}

type item struct {
	size int
	run  func()
}

func newQueue(most int) *queue { return &queue{most: max(1, most), wake: make(chan struct{}, 1)} }

// put queues run, and reports whether there was room. If there was none and roomAgain is not
// nil, roomAgain gets a token when the queue is empty again, unless it already holds one.
func (q *queue) put(size int, run func(), roomAgain chan<- struct{}) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return false
	}
	if n := len(q.items); n > 0 && (n >= q.most || q.size+size > maxQueuedBytes) {
		if roomAgain != nil {
			q.missed = append(q.missed, roomAgain)
		} else {
			q.lost++
		}
		return false
	}
	q.items = append(q.items, item{size, run})
	q.size += size
	signal(q.wake)
	return true
}

// signal puts a token into a channel of one, if it is empty.
func signal(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// next takes the first item; ok is false if there is none. The item counts until it is done, so
// that a handler that blocks with a long message does not make room for another.
func (q *queue) next() (i item, ok, closed bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.items) == 0 {
		return item{}, false, q.closed
	}
	return q.items[0], true, false
}

// done drops the first item, and returns the channels that may try again.
func (q *queue) done() []chan<- struct{} {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.items) == 0 { // closed meanwhile
		return nil
	}
	q.size -= q.items[0].size
	q.items[0] = item{}
	q.items = q.items[1:]
	if len(q.items) > 0 {
		return nil
	}
	missed := q.missed
	q.items, q.missed = nil, nil
	return missed
}

// run runs queued items until the queue is closed.
func (q *queue) run() {
	for {
		i, ok, closed := q.next()
		switch {
		case closed:
			return
		case !ok:
			<-q.wake
			continue
		}
		i.run()
		for _, roomAgain := range q.done() {
			signal(roomAgain)
		}
	}
}

// close ends run: at once, if drop is true, else when the queue is empty.
func (q *queue) close(drop bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	if drop {
		q.items, q.size, q.missed = nil, 0, nil
	}
	signal(q.wake)
}

func (q *queue) dropped() int64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.lost
}
