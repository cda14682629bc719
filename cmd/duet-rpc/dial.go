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
	path, err := socket.Find(p.StateDir)
	if err != nil {
		return nil, err
	}
	open := func(ctx context.Context) (server.Transport, error) {
		ctx, cancel := context.WithTimeout(ctx, dialWithin)
		defer cancel()
		conn, err := socket.Dial(ctx, path)
		if err != nil {
			return nil, err
		}
		return conn, nil
	}
	c, err := client.Dial(ctx, client.Opener(open), append(opts, client.WithFraming(frame.LSP))...)
	var nobody *socket.NobodyError
	if errors.As(err, &nobody) {
		return nil, nobody // it says all there is to say
	}
	return c, err
}
