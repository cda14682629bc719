package server

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/sourcegraph/jsonrpc2"

	"github.com/duet-rpc/duet-rpc/frame"
)

const (
	// flushAt is the number of queued bytes that justify a system call.
	flushAt = 64 << 10
	// largeResult is the size above which copying a result costs more than a write of its own.
	largeResult = 64 << 10
)

// errClosed is the error of senders after the outbox is closed.
var errClosed = errors.New("server: the connection is closed")

// An outbox joins the messages of many goroutines into few writes. A goroutine that flushes
// while no other writes, writes for all. A goroutine that arrives during a write only queues. So
// replies to pipelined requests share one write, and no goroutine has to be woken for it.
//
// It holds little more than limit bytes: beyond that, senders wait for the peer to read.
type outbox struct {
	t       Transport
	timed   timedWriter // t, if it implements timedWriter
	framing frame.Framing
	limit   int
	trace   func(message []byte) // sees outgoing messages; may be nil
	broken  chan struct{}        // closed when a write fails or the outbox is closed
	writers sync.WaitGroup       // a goroutine that writes the rest for a slow peer

	mu      sync.Mutex // guards the fields below
	changed sync.Cond  // room was made, the writer stopped, or err was set
	queue   []byte     // frames that no writer has taken yet
	// attachments belong to some of them, in order.
	attachments []queuedAttachment
	spare       []byte // an empty buffer for the next queue
	writing     bool   // a caller or a goroutine is in Write
	inWrite     int    // bytes held by the writer
	err         error  // final
}

func newOutbox(t Transport, f frame.Framing, limit int) *outbox {
	o := &outbox{t: t, framing: f, limit: limit, broken: make(chan struct{})}
	o.timed, _ = t.(timedWriter)
	o.changed.L = &o.mu
	return o
}

// result queues a response. It goes out at the next flush.
func (o *outbox) result(id, result []byte) {
	o.mu.Lock()
	if !o.full() && o.err == nil || o.waitForRoom() == nil {
		o.appendResult(id, result)
	}
	o.mu.Unlock()
}

func (o *outbox) appendResult(id, result []byte) {
	if o.trace != nil {
		o.traceResult(id, result)
	}
	if len(result) >= largeResult && !o.writing && len(o.attachments) == 0 {
		o.writeLarge(id, result)
		return
	}
	o.queue = frame.AppendResult(o.queue, o.framing, id, result)
	o.flushIfLong()
}

// resultWith is result with an attachment, of which it takes ownership.
func (o *outbox) resultWith(id, result []byte, a Attachment) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.waitForRoom() != nil {
		a.Close()
		return
	}
	o.traceResult(id, result)
	o.attachments = append(o.attachments, queuedAttachment{len(o.queue), a})
	o.queue = frame.AppendResult(o.queue, o.framing, id, result)
	o.flushIfLong()
}

// fail queues an error response. It goes out at the next flush.
func (o *outbox) fail(id []byte, e *jsonrpc2.Error) { o.body(frame.ErrorBody(id, e)) }

// body queues a whole message. It goes out at the next flush.
func (o *outbox) body(message []byte) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.waitForRoom() != nil {
		return
	}
	o.append(message)
	o.flushIfLong()
}

// append queues a message.
func (o *outbox) append(message []byte) {
	if o.trace != nil {
		o.trace(message)
	}
	o.queue = frame.Append(o.queue, o.framing, message)
}

func (o *outbox) traceResult(id, result []byte) {
	if o.trace != nil {
		o.trace(fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"result":%s}`, id, result))
	}
}

// send queues whole messages, which stay together, and flushes. It waits for room until ctx
// ends.
func (o *outbox) send(ctx context.Context, messages ...[]byte) error {
	defer o.wakeAtEnd(ctx)()
	o.mu.Lock()
	defer o.mu.Unlock()
	if err := o.roomLocked(ctx); err != nil {
		return err
	}
	for _, message := range messages {
		o.append(message)
	}
	o.flushLocked()
	return nil
}

// roomLocked waits for room until ctx ends. It flushes before it waits: while an inline handler
// runs no other goroutine may flush, and then room would never be made. It is the only way to
// wait for room.
func (o *outbox) roomLocked(ctx context.Context) error {
	for o.err == nil && o.full() {
		o.flushLocked()
		if o.err != nil || !o.full() {
			break
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		o.changed.Wait() // another goroutine is writing
	}
	return o.err
}

// wakeAtEnd wakes the goroutines that wait for a change when ctx ends, until the returned
// function is called.
func (o *outbox) wakeAtEnd(ctx context.Context) (stop func() bool) {
	return context.AfterFunc(ctx, func() {
		o.mu.Lock()
		o.changed.Broadcast()
		o.mu.Unlock()
	})
}

// trySend is send without waiting for room: it reports whether there was room.
func (o *outbox) trySend(message []byte) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.full() {
		o.flushLocked()
	}
	if o.err != nil || o.full() {
		return false
	}
	o.append(message)
	o.flushLocked()
	return true
}

func (o *outbox) full() bool { return len(o.queue)+o.inWrite >= o.limit }

// waitForRoom waits for room until the connection ends.
func (o *outbox) waitForRoom() error { return o.roomLocked(context.Background()) }

func (o *outbox) flushIfLong() {
	if len(o.queue) >= flushAt {
		o.flushLocked()
	}
}

// writeLarge writes the queue and a large result without copying it.
func (o *outbox) writeLarge(id, result []byte) {
	o.queue = frame.AppendResultHead(o.queue, o.framing, id, len(result))
	out, _ := o.take()
	// Messages queued during this write follow its end.
	o.queue = frame.AppendResultTail(o.queue, o.framing)
	if o.write(out, result, nil) {
		o.recycle(out)
	}
}

// finish flushes and waits until all is written or ctx ends; after that nothing can be sent. It
// reports whether all was written, or the peer had gone.
func (o *outbox) finish(ctx context.Context) bool {
	defer o.wakeAtEnd(ctx)()
	o.mu.Lock()
	defer o.mu.Unlock()
	o.flushLocked()
	for o.err == nil && (o.writing || len(o.queue) > 0) && ctx.Err() == nil {
		o.changed.Wait()
		o.flushLocked() // messages queued during a write
	}
	all := o.err != nil || !o.writing && len(o.queue) == 0
	o.breakLocked(errClosed)
	o.changed.Broadcast()
	return all
}
