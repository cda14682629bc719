package server

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"

	"github.com/sourcegraph/jsonrpc2"
)

type afterKey struct{}

// afterwards collects the attachment of a reply, and the functions to call after it.
type afterwards struct {
	todo       []func()
	mayAttach  bool       // the reply may carry an attachment
	attachment Attachment // to send with the reply; nil: none
}

func (a *afterwards) run() {
	for len(a.todo) > 0 {
		todo := a.todo
		a.todo = nil
		for _, f := range todo {
			f()
		}
	}
}

// AfterReply calls f when the reply to the request of ctx is queued, so that messages from f
// follow the reply. For a notification, which has no reply, it calls f when the handler has
// returned. A batch has one reply. f must not block: the next message may wait for it. The
// connection logs a panic of f.
//
// A handler calls AfterReply with its own context, from its own goroutine, before it returns.
// AfterReply panics if ctx is not a handler's.
func AfterReply(ctx context.Context, f func()) {
	a, ok := ctx.Value(afterKey{}).(*afterwards)
	if !ok {
		panic("server: AfterReply outside of a handler")
	}
	c := ConnFrom(ctx)
	a.todo = append(a.todo, func() {
		defer func() {
			if p := recover(); p != nil {
				c.log.Error("a function that follows a reply panicked",
					"panic", fmt.Sprint(p), "stack", string(debug.Stack()))
			}
		}()
		f()
	})
}

// An Attachment travels with a reply over the same transport, beside its bytes: an open file on
// a Unix socket ([ReplyFile]).
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
