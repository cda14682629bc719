package server

import (
	"context"
	"fmt"
	"runtime/debug"
)

type afterKey struct{}

// afterwards is what handlers want to go with their reply, or to do after it.
type afterwards struct {
	todo       []func()
	mayAttach  bool       // the reply may carry an attachment
	attachment Attachment // that is to go with it; nil: none
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

// AfterReply calls f when the reply to the request that ctx belongs to has
// been queued, so that whatever f sends comes behind it; if there is no reply,
// because it was a notification, when the handler has returned. A batch has
// one reply. f must not block: the next message may wait for it. A panic of f
// is logged.
//
// A handler calls AfterReply with the context that it was given, from its own
// goroutine, before it returns. It panics where ctx is not a handler's.
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
