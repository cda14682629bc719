package server

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"time"

	"github.com/sourcegraph/jsonrpc2"

	"github.com/duet-rpc/duet-rpc/frame"
)

// Serve serves one connection and returns when it has ended. The error is nil if the peer closed
// it, ctx ended or a handler called [Conn.End]; otherwise it is the transport's. Running
// handlers get Options.Grace, queued replies are written as far as the peer takes them, and the
// transport is closed.
func (s *Server) Serve(ctx context.Context, t Transport, f frame.Framing) error {
	return s.connect(ctx, t, f, nil).serve(ctx)
}

// Connect starts to serve a connection and returns it, for a program that calls its peer. The
// connection lives as long as ctx and the peer; Conn.Done is closed when it has ended.
func (s *Server) Connect(ctx context.Context, t Transport, f frame.Framing) *Conn {
	c := s.connect(ctx, t, f, nil)
	go c.serve(ctx)
	return c
}

// ServeListener accepts connections until ctx ends or l fails, detects the framing of each by
// its first byte, and serves it. It closes l and returns when all connections have ended: nil
// after ctx ended.
func (s *Server) ServeListener(ctx context.Context, l net.Listener) error {
	stop := context.AfterFunc(ctx, func() { l.Close() })
	defer stop()
	var conns sync.WaitGroup
	defer conns.Wait()
	defer l.Close()
	for {
		conn, err := l.Accept()
		if err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return err
		}
		conns.Go(func() {
			if err := s.serveDetected(ctx, conn); err != nil {
				s.opts.Logger.Warn("connection failed", "err", err)
			}
		})
	}
}

// serveDetected serves a connection whose framing it detects by the first byte.
func (s *Server) serveDetected(ctx context.Context, t Transport) error {
	stop := context.AfterFunc(ctx, func() { t.Close() })
	head := make([]byte, 512)
	for {
		n, err := t.Read(head)
		// White space before the first message has no meaning in either framing, so the bytes
		// before this read are dropped.
		if f, ok := s.opts.Detect(head[:n]); ok {
			stop()
			return s.connect(ctx, t, f, head[:n]).serve(ctx)
		}
		if err != nil {
			stop()
			t.Close()
			if errors.Is(err, io.EOF) || ctx.Err() != nil {
				return nil
			}
			return err
		}
	}
}

// serve runs the connection from its first message to its end.
func (c *Conn) serve(ctx context.Context) error {
	var err, readErr error
	go func() {
		defer close(c.loopEnded)
		readErr = c.readLoop()
	}()
	select {
	case <-c.loopEnded: // the peer ended it, or it failed
	case <-c.stop:
	case <-c.out.broken:
	case <-ctx.Done():
	}
	c.End()
	ends := !c.isHandedOver() || !c.flights.wait(ctx) || !c.out.finish(ctx)
	if ending := c.srv.opts.Observer.Ending; ending != nil && ends {
		ending()
	}
	idle := c.drain()
	if ends {
		c.t.Close()
	} else { // the outbox has set one
		_ = c.t.SetWriteDeadline(time.Time{})
	}
	// A handler that ignores the end, or a call of the transport that outlives Close, would
	// block readLoop or the writer, and this function, forever.
	outlives := outlivesClose(c.t)
	if idle && !(outlives && c.stoppedRead) {
		<-c.loopEnded
		err = readErr
	}
	if !outlives {
		c.out.writers.Wait()
	}
	c.disconnect(errEnded)
	c.owned.Close(context.Background()) // no error: Close waits as long as they take
	c.srv.forget(c)
	close(c.done)
	return err
}

// drain gives running handlers and queued replies the grace period, and reports whether readLoop
// has left the last inline handler.
func (c *Conn) drain() (idle bool) {
	grace := c.srv.opts.Grace
	all, cancelAll := context.WithTimeout(context.Background(), grace)
	defer cancelAll()
	gentle, cancelGentle := context.WithTimeout(all, grace*3/4)
	defer cancelGentle()

	idle = c.loopIsIdle(gentle)
	handled := idle && c.flights.wait(gentle) && c.final.wait(gentle)
	c.cancel(errEnded)
	c.calls.End(jsonrpc2.ErrClosed)
	if !handled {
		c.log.Warn("handlers were cut short by the end of the connection", "long_running", c.InFlight())
		idle = c.loopIsIdle(all)
		c.flights.wait(all)
	}
	c.final.wait(all)
	if !c.out.finish(all) {
		c.log.Warn("replies were lost: the peer does not read")
	}
	return idle
}

// loopIsIdle waits until no inline handler runs, and reports whether that happened before ctx
// ended. The loop is stopped already, so none begins.
func (c *Conn) loopIsIdle(ctx context.Context) bool {
	if c.stoppedRead {
		return true
	}
	select {
	case <-c.loopEnded:
		return true
	case <-ctx.Done():
		return false
	}
}

// readLoop reads and dispatches messages until the input ends.
func (c *Conn) readLoop() error {
	var m frame.Message
	for c.phase.Load() != stopped {
		err := c.reader.Next(&m)
		if err == nil {
			if c.handover != nil && !c.closing.Load() && c.handover.wanted(&m) {
				c.handOver(&m)
				return nil
			}
			if received := c.srv.opts.Observer.Received; received != nil {
				received()
			}
			if trace := c.srv.opts.Trace; trace != nil {
				trace(c, false, m.Body)
			}
			if c.closing.Load() {
				c.serveClosing(&m)
			} else {
				c.dispatch(&m)
			}
			continue
		}
		var refusal *frame.Refusal
		switch {
		case errors.As(err, &refusal):
			if c.closing.Load() {
				continue
			}
			c.log.Warn("frame refused", "reason", refusal.Reason, "detail", refusal.Detail)
			c.out.fail(refusal.ID, refusal.Wire())
			c.unserved("", err)
		case errors.Is(err, frame.ErrTimeout):
			c.log.Warn("a frame did not arrive whole in time; what came of it was dropped",
				"timeout", c.Limits().Timeout)
			c.unserved("", err)
		case IsGone(err), c.phase.Load() == stopped:
			return nil
		default:
			return err
		}
	}
	return nil
}
