package main

import (
	"context"
	"errors"
	"time"

	"github.com/duet-rpc/duet-rpc/client"
	"github.com/duet-rpc/duet-rpc/frame"
	"github.com/duet-rpc/duet-rpc/internal/project"
	"github.com/duet-rpc/duet-rpc/internal/socket"
	"github.com/duet-rpc/duet-rpc/server"
)

// dialWithin is how long a hub may take to accept a connection.
const dialWithin = 5 * time.Second

// dialHub connects to the hub of a project. Where there is none the error
// says how to start one.
func dialHub(ctx context.Context, p project.Project, opts ...client.Option) (*client.Client, error) {
	var problem error
	open := func(ctx context.Context) (server.Transport, error) {
		// The next hub may listen elsewhere.
		conn, err := dialSocket(ctx, p)
		if err != nil {
			problem = err
			return nil, err
		}
		return conn, nil
	}
	c, err := client.Dial(ctx, client.Opener(open), append(opts, client.WithFraming(frame.LSP))...)
	if err == nil {
		return c, nil
	}
	var nobody *socket.NobodyError
	var unsafe *socket.UnsafeError
	switch {
	case errors.As(err, &nobody): // they say all there is to say
		return nil, nobody
	case errors.As(err, &unsafe):
		return nil, unsafe
	case problem != nil:
		return nil, problem
	}
	return nil, err
}
