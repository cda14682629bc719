package server

import (
	"errors"
	"os"
	"time"
)

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
