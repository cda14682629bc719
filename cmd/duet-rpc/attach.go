package main

import (
	"context"
	"net"
	"os"
	"time"

	"github.com/duet-rpc/duet-rpc/frame"
	"github.com/duet-rpc/duet-rpc/internal/logging"
	"github.com/duet-rpc/duet-rpc/internal/relay"
	"github.com/duet-rpc/duet-rpc/internal/socket"
	"github.com/duet-rpc/duet-rpc/server"
)

// An attachment is a process that another one's hub serves: it passes its
// editor's messages on, and becomes the hub itself when that one has gone.
type attachment struct {
	settings *settings
	log      *logging.Log
	ctx      context.Context
	claim    claim
	host     *host // once this process is the hub; for the relay's goroutine alone
}

// attachEditor serves an editor by the hub of another process.
func attachEditor(ctx context.Context, s *settings, log *logging.Log, c claim, editor server.Transport) error {
	a := &attachment{settings: s, log: log, ctx: ctx, claim: c}
	log.Info("another process is this project's hub; attaching to it", "hub", c.err)
	err := relay.New(editor, relay.Options{
		Connect: a.connect, Limits: s.limits, Logger: log.Logger,
	}).Run(ctx)
	if err != nil {
		log.Error("the connection failed", "err", err)
	}
	if a.host != nil {
		a.host.linger()
		a.host.close()
	}
	log.Info("stopped")
	return nil
}

// connectPause is how long an attached process waits before it looks again for
// a hub, or a lock that is free.
const connectPause = 10 * time.Millisecond

// connect joins the hub, whoever that is: the process that answers on the
// project's socket, or this one, if nobody has the lock any more.
func (a *attachment) connect(ctx context.Context) (server.Transport, error) {
	if a.host != nil { // it has ended: by daemon.stop
		a.host.close()
		a.host = nil
	}
	for {
		if t, err := a.join(ctx); err == nil {
			return t, nil
		} else if ctx.Err() != nil {
			return nil, err
		}
		if _, err := os.Stat(stoppedMark(a.claim.project)); err == nil && !relay.Wanted(ctx) {
			return nil, relay.ErrDormant
		}
		c := claimProject(a.settings)
		if c.err == nil {
			return a.become(c), nil
		}
		if !c.held() {
			return nil, c.err
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(connectPause):
		}
	}
}

// join connects to the hub of another process.
func (a *attachment) join(ctx context.Context) (server.Transport, error) {
	path, err := socket.Find(a.claim.project.StateDir)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, dialWithin)
	defer cancel()
	conn, err := socket.Dial(ctx, path)
	if err != nil {
		return nil, err
	}
	if err := answers(ctx, conn); err != nil {
		conn.Close()
		return nil, err
	}
	return conn, nil
}

// answers makes sure that a hub answers at the other end: the socket of one
// that was killed takes connections until the system has closed it.
func answers(ctx context.Context, conn net.Conn) error {
	if deadline, ok := ctx.Deadline(); ok {
		conn.SetDeadline(deadline)
	}
	if _, err := conn.Write(frame.Append(nil, frame.LSP, []byte(`{"jsonrpc":"2.0","id":0,"method":"ping"}`))); err != nil {
		return err
	}
	var answer frame.Message
	if err := frame.NewReader(conn, frame.LSP, frame.Limits{}).Next(&answer); err != nil {
		return err
	}
	return conn.SetDeadline(time.Time{})
}

// become makes this process the hub.
func (a *attachment) become(c claim) server.Transport {
	a.log.Info("the hub has gone; this process takes its place")
	a.host = newHost(a.ctx, a.settings, a.log, c)
	a.host.begin()
	a.host.open() // somebody waits for it
	near, far := server.Pipe()
	host := a.host
	host.sockets.Go(func() {
		if err := host.srv.Serve(host.ctx, far, frame.LSP); err != nil {
			a.log.Error("the connection failed", "err", err)
		}
	})
	return near
}
