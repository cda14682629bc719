// Package catalogrpc carries package catalog over JSON-RPC: it registers the methods of one role at
// an endpoint, and returns the other role as a value whose methods are calls.
package catalogrpc

import (
	"context"
	"time"

	"github.com/duet-rpc/duet-rpc/server"
)

// FDVariable names, in an executor's environment, the descriptor of the link to the hub, a Unix
// socketpair.
const FDVariable = "DUET_EXECUTOR_FD"

// MaxMessage limits a message between hub and executor, in bytes. The limit for agents is lower.
const MaxMessage = 64 << 20

// patience is the timeout of calls that wait for a person or an agent. The caller's context ends
// them earlier.
const patience = 365 * 24 * time.Hour

// patient adds a distant deadline to a ctx without one: the connection's own timeout would end
// calls that wait for a person.
func patient(ctx context.Context) (context.Context, context.CancelFunc) {
	if _, has := ctx.Deadline(); has {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, patience)
}

// call calls a method of the peer.
func call[R any](ctx context.Context, conn *server.Conn, method string, params any) (R, error) {
	ctx, cancel := patient(ctx)
	defer cancel()
	var result R
	err := conn.Call(ctx, method, params, &result)
	return result, err
}

type none struct{}

// notification makes a handler of a function without a result.
func notification[P any](f func(context.Context, P) error) func(context.Context, P) (none, error) {
	return func(ctx context.Context, params P) (none, error) { return none{}, f(ctx, params) }
}

// signal makes a handler of a function without parameters and result.
func signal(f func(context.Context) error) func(context.Context, none) (none, error) {
	return func(ctx context.Context, _ none) (none, error) { return none{}, f(ctx) }
}
