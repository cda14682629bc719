package server

import (
	"context"
	"errors"
	"os"
	"time"

	"github.com/sourcegraph/jsonrpc2"

	"github.com/duet-rpc/duet-rpc/frame"
)

// An Attachment goes with a reply over the same transport, beside its bytes: an
// open file on a Unix socket, for which there is package passfd.
type Attachment interface {
	// WriteWith writes p, which is not empty, to the transport, with the
	// attachment no later than its first byte. If it wrote nothing the
	// attachment has not gone, and WriteWith may be called again. Deadlines are
	// the transport's.
	WriteWith(t Transport, p []byte) (n int, err error)
	// Close is called once, when the attachment has gone or will not go.
	Close() error
}

// ErrNoAttachment is what Attach returns where a reply cannot carry one.
var ErrNoAttachment = errors.New("server: this reply can carry no attachment")

// CanAttach reports whether [Attach] works for the request that ctx belongs
// to: it must have an id, be none of a batch and be served by a method that is
// [LongRunning].
func CanAttach(ctx context.Context) bool {
	after, ok := ctx.Value(afterKey{}).(*afterwards)
	return ok && after.mayAttach
}

// Attach lets an attachment go with the reply to the request that ctx belongs
// to: no later than the reply's first byte, and behind whatever was sent
// before it. A reply carries one; another one takes its place. If the reply is
// an error, it goes without.
//
// The attachment is no longer the caller's, also where Attach returns
// [ErrNoAttachment]. A handler calls Attach as it calls [AfterReply].
func Attach(ctx context.Context, a Attachment) error {
	if !CanAttach(ctx) {
		a.Close()
		return ErrNoAttachment
	}
	after := ctx.Value(afterKey{}).(*afterwards)
	if after.attachment != nil {
		after.attachment.Close()
	}
	after.attachment = a
	return nil
}

// An attachedReply is the reply to one request, with an attachment.
type attachedReply struct {
	c *Conn
	a Attachment
}

func (r *attachedReply) result(id, result []byte) {
	if result, ok := r.c.inOneMessage(id, result); ok {
		r.c.out.resultWith(id, result, r.a)
	} else {
		r.fail(id, resultTooLarge(r.c.srv.opts.MaxLine))
	}
}

func (r *attachedReply) fail(id []byte, e *jsonrpc2.Error) {
	r.a.Close()
	r.c.fail(id, e)
}

// A queued attachment goes with the byte of the queue at which its frame begins.
type queuedAttachment struct {
	at int
	Attachment
}

// resultWith is result with an attachment, which is then the outbox's.
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

// takePart takes what stands before the first frame with an attachment, or that
// frame and what stands before the next one.
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

// writeAttached is writeAll with an attachment, which it closes unless it is to
// be tried again.
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

// dropAttachments closes what nobody will get; o.mu is held.
func (o *outbox) dropAttachments() {
	for _, a := range o.attachments {
		a.Close()
	}
	o.attachments = nil
}
