package server

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/duet-rpc/duet-rpc/frame"
	"github.com/duet-rpc/duet-rpc/internal/background"
	"github.com/duet-rpc/duet-rpc/internal/pending"
)

// A Conn is one connection: a transport, its framing, and what is under way
// on it. Its methods may be called from any goroutine.
type Conn struct {
	srv     *Server
	number  uint64
	t       Transport
	framing frame.Framing
	oneLine bool // its messages are lines, which have a limit
	log     *slog.Logger

	reader  *frame.Reader // for readLoop alone
	out     *outbox
	flights inflight

	calls    pending.Calls // requests of ours
	lastCall atomic.Uint64 // the id of the last one

	// inlineCtx is the context of inline handlers, one for all; long-running
	// ones have their own, derived from baseCtx.
	baseCtx   context.Context
	inlineCtx context.Context
	cancel    context.CancelCauseFunc
	after     afterwards // of inline handlers; for readLoop alone

	lastMethod *Method // that a message named; for readLoop alone
	lastName   []byte  // as that message spelt it

	// connected is the context of the goroutines of Go. It outlives baseCtx: what
	// they send still goes out beside the last replies.
	connected  context.Context
	disconnect context.CancelCauseFunc
	owned      background.Group // the goroutines of Go

	handover    *handover              // of ServeUntil; nil: nothing is handed over
	closing     atomic.Bool            // a final method is being served: messages are dropped
	final       tasks                  // its goroutine
	failed      atomic.Pointer[string] // the notification that failed last, and how
	phase       atomic.Int32           // of readLoop: serving, reading or stopped
	stop        chan struct{}          // closed with stopped
	stopOnce    sync.Once
	stoppedRead bool          // readLoop was reading when it was stopped; written before stop is closed
	loopEnded   chan struct{} // closed when readLoop has returned
	done        chan struct{} // closed when the connection has ended
}

// The phases of readLoop. Whoever stops it learns in the same step whether it
// was reading, so that it dispatches nothing more, or serves a message, so that
// it returns when it has served it.
const (
	serving int32 = iota // it looks at a message, or is about to read
	reading              // it is inside the transport's Read
	stopped              // no further message is looked at
)

type (
	connKey   struct{}
	inlineKey struct{}
)

// errEnded is the cause of the contexts of a connection that has ended.
var errEnded = errors.New("the connection has ended")

func newConn(ctx context.Context, s *Server, t Transport, f frame.Framing, head []byte) *Conn {
	c := &Conn{
		srv: s, number: s.numbers.Add(1), t: t, framing: f, oneLine: f.OneLine(), log: s.opts.Logger,
		out:       newOutbox(t, f, s.opts.MaxQueued),
		flights:   inflight{limit: s.opts.MaxLongRunning},
		stop:      make(chan struct{}),
		loopEnded: make(chan struct{}),
		done:      make(chan struct{}),
	}
	if s.opts.RandomCallIDs {
		c.lastCall.Store(rand.Uint64N(1 << 52)) // numbers in JSON are exact below 1 << 53
	}
	if trace := s.opts.Trace; trace != nil {
		c.out.trace = func(message []byte) { trace(c, true, message) }
	}
	c.reader = frame.NewReader(connSource{c}, f, s.opts.Limits)
	c.reader.Unread(head)
	c.reader.BeforeRead = c.out.flush
	c.reader.Released = s.opts.Released
	// Handlers outlive ctx by the grace that they are given.
	base := context.WithValue(context.WithoutCancel(ctx), connKey{}, c)
	c.baseCtx, c.cancel = context.WithCancelCause(base)
	c.connected, c.disconnect = context.WithCancelCause(base)
	c.inlineCtx = context.WithValue(context.WithValue(c.baseCtx, inlineKey{}, true), afterKey{}, &c.after)
	return c
}

// ConnFrom is the connection whose request a handler is serving, or nil.
func ConnFrom(ctx context.Context) *Conn {
	c, _ := ctx.Value(connKey{}).(*Conn)
	return c
}

// Transport is what the connection runs on, for a package that knows more of
// it than the protocol does, such as passfd. It is not to be read from, written
// to or closed: see [Conn.End].
func (c *Conn) Transport() Transport { return c.t }

// Number tells the connections of a server apart, for logs: they are counted
// from 1.
func (c *Conn) Number() uint64 { return c.number }

// Framing is how messages are framed on the connection.
func (c *Conn) Framing() frame.Framing { return c.framing }

// Limits are the limits on incoming frames.
func (c *Conn) Limits() frame.Limits { return c.reader.Limits() }

// Done is closed when the connection has ended.
func (c *Conn) Done() <-chan struct{} { return c.done }

// Stopping is closed when the connection begins to end: running handlers have
// the rest of Options.Grace.
func (c *Conn) Stopping() <-chan struct{} { return c.stop }

// End ends the connection: no further message is looked at, running handlers
// get Options.Grace, then the transport is closed. It does not wait; see Done.
func (c *Conn) End() {
	c.stopOnce.Do(func() {
		c.stoppedRead = c.phase.Swap(stopped) == reading
		close(c.stop)
	})
}

// Wait waits until no long-running request is in flight, and reports whether
// that came to pass before ctx ended. Requests that ended because the
// connection ends do not count as ended.
func (c *Conn) Wait(ctx context.Context) bool {
	return c.flights.wait(ctx) && c.baseCtx.Err() == nil
}

// InFlight is how many long-running requests are being served.
func (c *Conn) InFlight() int { return int(c.flights.count.Load()) }

// unserved tells of what was not served.
func (c *Conn) unserved(method string, err error) {
	if report := c.srv.opts.Unserved; report != nil {
		report(c, method, err)
	}
}

// connSource is the transport as the Reader sees it: it tells when the loop is
// in Read, and ends the input when the connection is stopping.
type connSource struct{ c *Conn }

func (s connSource) Read(p []byte) (int, error) {
	c := s.c
	if !c.phase.CompareAndSwap(serving, reading) {
		return 0, errEnded // not io.EOF: a frame that is cut short here is nobody's fault
	}
	n, err := c.t.Read(p)
	if !c.phase.CompareAndSwap(reading, serving) {
		return 0, errEnded
	}
	return n, err
}

func (s connSource) SetReadDeadline(t time.Time) error { return s.c.t.SetReadDeadline(t) }

// Go runs f in a goroutine of the connection, for what outlives a request, such
// as a subscription. The connection has ended only when f has returned: ctx ends
// when nothing more can be sent, and f is waited for without a limit, so it must
// not wait for [Conn.Done]. ctx knows the connection ([ConnFrom]). Go reports
// whether it started f: where the connection has ended it does nothing.
func (c *Conn) Go(f func(ctx context.Context)) bool {
	return c.owned.Go(func() { f(c.connected) })
}
