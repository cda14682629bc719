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

// A Conn is one connection: a transport, its framing, and the requests in progress. Its methods
// may be called from any goroutine.
type Conn struct {
	srv     *Server
	number  uint64
	t       Transport
	framing frame.Framing
	oneLine bool // messages are lines, which have a length limit
	log     *slog.Logger

	reader  *frame.Reader // used by readLoop only
	out     *outbox
	flights inflight

	calls    pending.Calls // requests to the peer
	lastCall atomic.Uint64 // the id of the last one

	// inlineCtx is the context of inline handlers, one for all; long-running
	// ones have their own, derived from baseCtx.
	baseCtx   context.Context
	inlineCtx context.Context
	cancel    context.CancelCauseFunc
	after     afterwards // of inline handlers; used by readLoop only

	lastMethod *Method // of the previous message; used by readLoop only
	lastName   []byte  // as that message spelt it

	// connected is the context of the goroutines of Go. It outlives baseCtx: messages from these
	// goroutines still go out with the last replies.
	connected  context.Context
	disconnect context.CancelCauseFunc
	owned      background.Group // the goroutines of Go

	handover    *handover              // of ServeUntil; nil: no handover
	closing     atomic.Bool            // a final method is running: further messages are dropped
	final       tasks                  // its goroutine
	failed      atomic.Pointer[string] // the last failed notification and its error
	phase       atomic.Int32           // of readLoop: serving, reading or stopped
	stop        chan struct{}          // closed with stopped
	stopOnce    sync.Once
	stoppedRead bool          // readLoop was reading when it was stopped; written before stop is closed
	loopEnded   chan struct{} // closed when readLoop has returned
	done        chan struct{} // closed when the connection has ended
}

// The phases of readLoop. Stopping it also returns its phase. A loop that was reading dispatches
// nothing more; a loop that is serving returns after its current message.
const (
	serving int32 = iota // it handles a message, or is about to read
	reading              // it is inside the transport's Read
	stopped              // it handles no further message
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
	c.reader.Released = s.opts.Observer.Released
	// Handlers outlive ctx by Options.Grace.
	base := context.WithValue(context.WithoutCancel(ctx), connKey{}, c)
	c.baseCtx, c.cancel = context.WithCancelCause(base)
	c.connected, c.disconnect = context.WithCancelCause(base)
	c.inlineCtx = context.WithValue(context.WithValue(c.baseCtx, inlineKey{}, true), afterKey{}, &c.after)
	return c
}

// ConnFrom returns the connection whose request a handler is serving, or nil.
func ConnFrom(ctx context.Context) *Conn {
	c, _ := ctx.Value(connKey{}).(*Conn)
	return c
}

// Transport returns the connection's transport, for a package that knows more about it than the
// protocol does. The caller must not read from it, write to it or close it: see
// [Conn.End].
func (c *Conn) Transport() Transport { return c.t }

// Number is the number of the connection within its server, counted from 1, for logs.
func (c *Conn) Number() uint64 { return c.number }

// Framing returns the framing of the connection.
func (c *Conn) Framing() frame.Framing { return c.framing }

// Limits returns the limits on incoming frames.
func (c *Conn) Limits() frame.Limits { return c.reader.Limits() }

// Done is closed when the connection has ended.
func (c *Conn) Done() <-chan struct{} { return c.done }

// Stopping returns a channel that is closed when the connection begins to end: running handlers
// have the rest of Options.Grace.
func (c *Conn) Stopping() <-chan struct{} { return c.stop }

// End ends the connection: it handles no further message, running handlers get Options.Grace,
// then the transport is closed. End does not wait; see Done.
func (c *Conn) End() {
	c.stopOnce.Do(func() {
		c.stoppedRead = c.phase.Swap(stopped) == reading
		close(c.stop)
	})
}

// Wait waits until no long-running request is in flight, and reports whether that happened
// before ctx ended. Requests that end because the connection ends do not count.
func (c *Conn) Wait(ctx context.Context) bool {
	return c.flights.wait(ctx) && c.baseCtx.Err() == nil
}

// InFlight returns the number of long-running requests being served.
func (c *Conn) InFlight() int { return int(c.flights.count.Load()) }

// unserved reports a message that was not served.
func (c *Conn) unserved(method string, err error) {
	if report := c.srv.opts.Observer.Unserved; report != nil {
		report(c, method, err)
	}
}

// connSource is the transport as the Reader sees it. It records when the loop is in Read, and
// ends the input when the connection is stopping.
type connSource struct{ c *Conn }

func (s connSource) Read(p []byte) (int, error) {
	c := s.c
	if !c.phase.CompareAndSwap(serving, reading) {
		return 0, errEnded // not io.EOF: a frame that is cut short here is not an error of the peer
	}
	n, err := c.t.Read(p)
	if !c.phase.CompareAndSwap(reading, serving) {
		return 0, errEnded
	}
	return n, err
}

func (s connSource) SetReadDeadline(t time.Time) error { return s.c.t.SetReadDeadline(t) }

// Go runs f in a goroutine of the connection, for work that outlives a request, such as a
// subscription. The connection ends only after f has returned. ctx ends when nothing more can be
// sent. Go waits for f without a limit, so f must not wait for [Conn.Done]. ctx carries the
// connection ([ConnFrom]). Go reports whether it started f: after the connection has ended it
// does nothing.
func (c *Conn) Go(f func(ctx context.Context)) bool {
	return c.owned.Go(func() { f(c.connected) })
}
