package server

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"

	"github.com/duet-rpc/duet-rpc/frame"
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

// ErrTooLong is what Send returns for a message that does not fit into a line.
var ErrTooLong = errors.New("server: the message does not fit into a line")

// Send sends messages, each of which must encode to JSON, as they are: not
// every dialect of JSON-RPC has notifications that the specification knows.
// Several go out together: with one write, if the peer has room for them, so
// that it gets all or none. If the peer does not read, Send waits for room as
// long as ctx and the connection last, without a limit of its own. If one is
// longer than MaxMessage none is sent: ErrTooLong. When the connection has ended
// the error is jsonrpc2.ErrClosed; nil means that they are queued, no more.
func (c *Conn) Send(ctx context.Context, messages ...any) error {
	bodies := make([][]byte, len(messages))
	for i, message := range messages {
		body, err := frame.Encode(message)
		if err != nil {
			return err
		}
		if c.framing == frame.NDJSON {
			body = compactLine(body)
		}
		if most := c.MaxMessage(); most > 0 && len(body) > most {
			return ErrTooLong
		}
		bodies[i] = body
	}
	return closedError(c.out.send(ctx, bodies...))
}

// MaxMessage is how long a message may be that goes out, in bytes:
// Options.MaxLine where a message is a line, else 0, which means no limit.
func (c *Conn) MaxMessage() int {
	if c.framing == frame.NDJSON {
		return c.srv.opts.MaxLine
	}
	return 0
}
