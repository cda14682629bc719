package server

import (
	"context"
	"errors"

	"github.com/sourcegraph/jsonrpc2"
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
