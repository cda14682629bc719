package server

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

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

const (
	// patience is how long a flush waits for a peer that reads nothing, before a goroutine takes
	// over the rest and dispatch continues.
	patience = 20 * time.Millisecond
	// keepQueue is the largest buffer that is kept for reuse.
	keepQueue = 1 << 20
)

// A queuedAttachment is sent with the byte of the queue at which its frame begins.
type queuedAttachment struct {
	at int
	Attachment
}

// flush writes the queue, unless another goroutine is writing already. It returns after patience
// even if the peer reads nothing.
func (o *outbox) flush() {
	o.mu.Lock()
	o.flushLocked()
	o.mu.Unlock()
}

func (o *outbox) flushLocked() {
	if o.writing {
		return
	}
	for len(o.queue) > 0 && o.err == nil {
		out, with := o.take()
		if !o.write(out, nil, with) {
			return
		}
		o.recycle(out)
	}
}

// take hands the queue to the caller, the writer: all of it, or the part to write at once, with
// the attachment of its first byte.
func (o *outbox) take() (out []byte, with Attachment) {
	if len(o.attachments) > 0 {
		return o.takePart()
	}
	out = o.queue
	o.queue, o.spare = o.spare[:0], nil
	return out, nil
}

func (o *outbox) recycle(out []byte) {
	if o.spare == nil && cap(out) <= keepQueue {
		o.spare = out[:0]
	}
}

// write writes a and then b, which it only borrows, with mu released
// meanwhile; with, if not nil, goes with a. If the peer does not take all of
// it, a goroutine gets a copy of the rest and write returns false.
func (o *outbox) write(a, b []byte, with Attachment) bool {
	o.writing, o.inWrite = true, len(a)+len(b)
	o.mu.Unlock()
	n, err := o.writeAll(a, b, with, patience)
	o.mu.Lock()
	if errors.Is(err, os.ErrDeadlineExceeded) {
		if n > 0 {
			with = nil // sent with the first byte
		}
		if o.err != nil { // closed meanwhile: the rest is dropped
			if with != nil {
				with.Close()
			}
			o.written(nil)
			return true
		}
		var rest []byte
		if n < len(a) {
			rest = append(rest, a[n:]...)
			n = len(a)
		}
		rest = append(rest, b[n-len(a):]...)
		o.inWrite = len(rest)
		o.writers.Go(func() { o.drain(rest, with) })
		return false
	}
	o.written(err)
	return true
}

// writeAll writes a, with an attachment unless that is nil, and then b. It waits no longer than
// d for the peer to take more; a negative d means no limit.
func (o *outbox) writeAll(a, b []byte, with Attachment, d time.Duration) (int, error) {
	if with != nil {
		return o.writeAttached(a, with, d)
	}
	if o.timed != nil {
		return o.timed.WriteWithin(a, b, d)
	}
	if err := o.t.SetWriteDeadline(deadlineIn(d)); err != nil {
		return 0, err
	}
	n, err := o.t.Write(a)
	if err == nil && len(b) > 0 {
		var more int
		more, err = o.t.Write(b)
		n += more
	}
	return n, err
}

// deadlineIn returns the time in d; a negative d means no deadline.
func deadlineIn(d time.Duration) (t time.Time) {
	if d >= 0 {
		t = time.Now().Add(d)
	}
	return t
}

// written records the end of a write.
func (o *outbox) written(err error) {
	o.writing, o.inWrite = false, 0
	if err != nil {
		o.breakLocked(err)
	}
	o.changed.Broadcast()
}

// drain writes rest, with an attachment unless that is nil, and everything that is queued
// meanwhile, however long the peer takes. It ends when nothing is left or the transport is
// closed.
func (o *outbox) drain(rest []byte, with Attachment) {
	for {
		_, err := o.writeAll(rest, nil, with, -1)
		o.mu.Lock()
		if err != nil || o.err != nil || len(o.queue) == 0 {
			o.written(err)
			o.mu.Unlock()
			return
		}
		o.recycle(rest)
		rest, with = o.take()
		o.inWrite = len(rest)
		o.changed.Broadcast()
		o.mu.Unlock()
	}
}

func (o *outbox) breakLocked(err error) {
	if o.err == nil {
		o.err = err
		o.queue, o.spare = nil, nil
		o.dropAttachments()
		close(o.broken)
	}
}

// takePart takes the part of the queue before the first frame with an attachment, or that frame
// and the part before the next one.
func (o *outbox) takePart() (out []byte, with Attachment) {
	end := o.attachments[0].at
	if end == 0 {
		with, end = o.attachments[0].Attachment, len(o.queue)
		if o.attachments = o.attachments[1:]; len(o.attachments) > 0 {
			end = o.attachments[0].at
		}
	}
	out = o.queue[:end]
	o.queue, o.spare = append(o.spare[:0], o.queue[end:]...), nil
	for i := range o.attachments {
		o.attachments[i].at -= end
	}
	return out, with
}

// writeAttached is writeAll with an attachment, which it closes unless the write must be tried
// again.
func (o *outbox) writeAttached(p []byte, with Attachment, d time.Duration) (int, error) {
	err := o.t.SetWriteDeadline(deadlineIn(d))
	n := 0
	if err == nil {
		n, err = with.WriteWith(o.t, p)
	}
	if n > 0 || !errors.Is(err, os.ErrDeadlineExceeded) {
		with.Close()
	}
	return n, err
}

// dropAttachments closes the attachments that will not be sent; o.mu is held.
func (o *outbox) dropAttachments() {
	for _, a := range o.attachments {
		a.Close()
	}
	o.attachments = nil
}
