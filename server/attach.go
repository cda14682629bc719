package server

import (
	"context"
	"errors"

	"github.com/sourcegraph/jsonrpc2"
)

// An Attachment travels with a reply over the same transport, beside its bytes: an open file on
// a Unix socket (package passfd).
type Attachment interface {
	// WriteWith writes p, which is not empty, to the transport, with the attachment no later
	// than its first byte. If it wrote nothing the attachment was not sent, and WriteWith may be
	// called again. The transport's deadlines apply.
	WriteWith(t Transport, p []byte) (n int, err error)
	// Close is called once, after the attachment was sent or given up.
	Close() error
}

// ErrNoAttachment is the error of Attach if the reply cannot carry an attachment.
var ErrNoAttachment = errors.New("server: this reply can carry no attachment")

// CanAttach reports whether [Attach] works for the request of ctx: the request must have an id,
// must not be part of a batch, and its method must be [LongRunning].
func CanAttach(ctx context.Context) bool {
	after, ok := ctx.Value(afterKey{}).(*afterwards)
	return ok && after.mayAttach
}

// Attach sends an attachment with the reply to the request of ctx: no later than the reply's
// first byte, and after everything that was sent before it. A reply carries one attachment; a
// second call replaces it. An error reply carries none.
//
// Attach takes ownership of the attachment, even if it returns [ErrNoAttachment]. A handler
// calls Attach as it calls [AfterReply].
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
