// Package hubprocess connects a process to the hub of its project, which is another process. It
// holds the settings, finds the socket, and starts a daemon if none runs and one is wanted. It
// is never the hub itself; package host is.
package hubprocess

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"time"

	"github.com/duet-rpc/duet-rpc/client"
	"github.com/duet-rpc/duet-rpc/frame"
	"github.com/duet-rpc/duet-rpc/internal/project"
	"github.com/duet-rpc/duet-rpc/internal/socket"
	"github.com/duet-rpc/duet-rpc/server"
)

const (
	// listensWithin is how long the holder of the hub's lock may take to open its socket: the
	// first reply to its editor comes first.
	listensWithin = 2 * time.Second
)

// Dial connects to the hub of a project. It waits for a hub that has just begun. If there is
// none the error says how to start one. If one runs that cannot be reached, it is a *SilentError.
func Dial(ctx context.Context, s *Settings, p project.Project, opts ...client.Option) (*client.Client, error) {
	var problem error
	open := func(ctx context.Context) (server.Transport, error) {
		// The next hub may listen elsewhere.
		conn, err := Connect(ctx, s, p)
		if err != nil {
			problem = err
			return nil, err
		}
		return conn, nil
	}
	var pause Pause
	for deadline := time.Now().Add(min(listensWithin, s.AnswerWithin)); ; {
		c, err := client.Dial(ctx, client.Opener(open),
			append(opts, client.WithFraming(frame.LSP), client.WithLogger(slog.New(slog.DiscardHandler)))...)
		if err == nil {
			return c, nil
		}
		var unserved *socket.NoListenerError
		var unsafe *socket.UnsafeError
		switch {
		case errors.As(err, &unserved) && !p.Unlocked() && time.Now().Before(deadline):
			if pause.Wait(ctx) == nil {
				continue
			}
			return nil, unserved
		case errors.As(err, &unserved): // their texts are complete
			if pid, held := p.Holder(ctx); held { // the socket was removed, for example when the user logged out
				return nil, &SilentError{PID: pid, Held: true, Path: unserved.Path}
			}
			return nil, unserved
		case errors.As(err, &unsafe):
			return nil, unsafe
		case problem != nil:
			return nil, problem
		}
		return nil, err
	}
}

// Reach returns a client of the daemon of the project of s, here or on a host. Each time that it connects, also after the
// connection was lost, it starts a daemon if it may.
func Reach(ctx context.Context, s *Settings, may Start, opts ...client.Option) (*client.Client, error) {
	h, err := s.Remote()
	if err != nil {
		return nil, err
	}
	if h != nil {
		return h.Dial(ctx, may, opts...)
	}
	var problem error
	open := func(ctx context.Context) (server.Transport, error) {
		conn, _, err := s.start(ctx, may)
		if err != nil {
			problem = err
			return nil, err
		}
		return conn, nil
	}
	c, err := client.Dial(ctx, client.Opener(open), append(opts, client.WithFraming(frame.LSP), client.WithLogger(slog.New(slog.DiscardHandler)))...)
	if err != nil && problem != nil {
		err = problem
	}
	return c, err
}

// Connect connects to the hub that now answers on the project's socket. The error is a
// *SilentError if a process listens there but does not answer.
func Connect(ctx context.Context, s *Settings, p project.Project) (net.Conn, error) {
	return connect(ctx, s, p, s.environment)
}

// connect is Connect with the message that gives the daemon this process's environment. It is
// nil for a connection that only checks whether a daemon of any build answers.
func connect(ctx context.Context, s *Settings, p project.Project, environment func() []byte) (net.Conn, error) {
	if err := p.Check(); err != nil {
		return nil, err
	}
	path, err := socket.Find(p.StateDir)
	if err != nil {
		return nil, err
	}
	greeting, cancel := context.WithTimeout(ctx, s.AnswerWithin)
	defer cancel()
	conn, err := socket.Dial(greeting, path)
	if err == nil {
		err = s.greet(greeting, conn, environment)
	}
	var unserved *socket.NoListenerError
	var unsafe *socket.UnsafeError
	var incompatible *IncompatibleError
	switch {
	case err == nil:
		return conn, nil
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case errors.As(err, &unsafe):
		return nil, unsafe
	case errors.As(err, &unserved):
		return nil, err
	case errors.As(err, &incompatible):
		incompatible.PID, _ = p.Holder(ctx)
		return nil, incompatible
	}
	pid, held := p.Holder(ctx)
	return nil, &SilentError{PID: pid, Held: held, Path: path, err: err}
}

// greet checks, before ctx ends, that a daemon of a usable build answers at the other end. A
// connection alone proves nothing: the socket of a killed daemon accepts some until the system
// has closed it. Otherwise greet closes the connection. It also sends the environment for the
// agents of this process, as a notification, so that no request on the connection overtakes it.
func (s *Settings) greet(ctx context.Context, conn net.Conn, environment func() []byte) error {
	// Not with a deadline, which the frame reader sets.
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	_, err := conn.Write(frame.Append(nil, frame.LSP, s.greeting(environment == nil)))
	if err == nil && environment != nil { // collected while the daemon answers
		_, err = conn.Write(frame.Append(nil, frame.LSP, environment()))
	}
	var answer frame.Message
	if err == nil {
		err = frame.NewReader(conn, frame.LSP, frame.Limits{}).Next(&answer)
	}
	if err == nil && environment != nil {
		err = s.settle(conn, &answer)
	}
	if !stop() {
		return ctx.Err()
	}
	if err != nil {
		conn.Close()
		return err
	}
	return conn.SetDeadline(time.Time{})
}

// A SilentError reports that a process listens on the project's socket but does not answer, or that a
// hub runs that has no socket.
type SilentError struct {
	PID  int    // of the project's hub; 0 if unknown
	Held bool   // a process holds the hub's lock
	Path string // of the socket
	err  error
}

// endSilent is the remedy for a hub that does not answer.
const endSilent = "`duet-rpc daemon stop --force` ends it, and what it ran can be continued"

func (e *SilentError) Error() string {
	switch {
	case !e.Held:
		return fmt.Sprintf("what listens on %s does not answer, and it is not this project's daemon: end it, then start one", e.Path)
	case e.PID == 0:
		return "the daemon does not answer; " + endSilent
	}
	return fmt.Sprintf("the daemon (process %d) does not answer; %s", e.PID, endSilent)
}

func (e *SilentError) Unwrap() error { return e.err }

// A Pause is the wait between two attempts to reach another process: no event reports when it
// listens, or has released a lock. Each pause is half as long again as the previous one. The
// zero value is the first.
type Pause time.Duration

const (
	firstPause = 10 * time.Millisecond
	lastPause  = 200 * time.Millisecond
)

// Wait waits, or returns the error of ctx if that ends first.
func (p *Pause) Wait(ctx context.Context) error {
	*p = min(max(*p*3/2, Pause(firstPause)), Pause(lastPause))
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(time.Duration(*p)):
		return nil
	}
}
