package server

import (
	"context"
	"fmt"
	"runtime/debug"
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
				c.log.Error("what was to follow a reply panicked", "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
			}
		}()
		f()
	})
}
