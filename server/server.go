package server

import (
	"cmp"
	"context"
	"encoding/json"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/duet-rpc/duet-rpc/frame"
)

// Options configure a Server. A zero field means its default.
type Options struct {
	// Limits bound incoming frames.
	Limits frame.Limits
	// Detect recognises the framing of a connection of [Server.ServeListener] by its first
	// bytes. false asks for more bytes; the next call does not include the earlier ones.
	// Default: [frame.Detect].
	Detect func(head []byte) (frame.Framing, bool)
	// RandomCallIDs starts the ids of a connection's calls at a random number. A late answer to
	// a call of an earlier connection or process then matches none of its own.
	RandomCallIDs bool
	// Logger receives warnings for faults of a peer and for handler errors that the peer learns
	// only from the log, and every request at debug level. Of a peer's input it logs only names
	// of methods and ids. Default: slog.Default(), which writes to standard error.
	Logger *slog.Logger
	// MaxLongRunning is how many long-running requests a connection may have
	// in flight. Default 64.
	MaxLongRunning int
	// MaxBatch is how many requests a batch may hold. Default 1,000.
	MaxBatch int
	// MaxQueued is how many bytes may wait for a peer that does not read, plus or minus one
	// message; then dispatch waits too. Default 16 MiB.
	MaxQueued int
	// MaxLine bounds messages that go out as lines, such as NDJSON, in bytes: old clients fail
	// on a line of 1 MiB. A longer result becomes an error. Default 1 MiB - 1.
	MaxLine int
	// Grace is how long running handlers may take when a connection ends. In
	// its last quarter their contexts are cancelled. Default 1.5 s.
	Grace time.Duration
	// CallTimeout is how long Conn.Call waits if its context has no deadline.
	// Default 30 s.
	CallTimeout time.Duration
	// Trace, if set, receives each outgoing message, and each incoming one except refused
	// frames, in their order on a connection. The message is borrowed until Trace returns. Trace
	// must not block. Messages may contain secrets.
	Trace func(c *Conn, sent bool, message []byte)
	// OnNotification, if set, receives each notification in place of the registry, except those
	// of Cancellation: for a program that is mainly a client. An invalid message without an id
	// then gets no answer either. params is borrowed until it returns, and nil if there are
	// none. It must not block: no other message is read meanwhile.
	OnNotification func(c *Conn, method string, params json.RawMessage)
	// OnResponse, if set, receives each message without a method that answers no [Conn.Call], in
	// the order of arrival. It is for a program that tracks its own requests, or speaks a
	// dialect in which a result without an id is an event. m is borrowed until it returns, and
	// it must not block.
	OnResponse func(c *Conn, m *frame.Message)
	// MethodHint is the hint in the error for an unknown method. Default: no hint.
	MethodHint string
	// Cancellation is how the peers of the connections cancel requests. Default: as in the
	// Language Server Protocol, and the peer is not notified when a [Conn.Call] is given up.
	Cancellation Cancellation
	// Observer is notified of what connections do.
	Observer Observer
}

// An Observer has functions that a Server calls. All may be nil, and none may block. It is for a
// program that counts faults, returns memory to the system, or ends without clients.
type Observer struct {
	// Received is called when a message has come, before it is served.
	Received func()
	// Unserved is called for a message that was not served and gets no error response. That is a
	// notification whose parameters were wrong or whose handler failed or, with method "", a frame
	// that was refused or did not arrive whole.
	Unserved func(c *Conn, method string, err error)
	// Ending is called when a connection begins to end: its handlers have Options.Grace from then
	// on.
	Ending func()
	// Ended is called when a connection has ended and is no longer counted.
	Ended func()
	// Released is called when a connection released a large buffer, and when a hundred connections
	// have ended: a good time to return memory to the system.
	Released func()
}

// A Cancellation is a protocol's notification that cancels a request.
type Cancellation struct {
	Method string // of the notification; "": $/cancelRequest
	Member string // of its params, which holds the id; "": id
	// Tell makes a [Conn.Call] that is given up notify the peer.
	Tell bool
}

func (o Options) withDefaults() Options {
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	if o.Detect == nil {
		o.Detect = frame.Detect
	}
	o.Cancellation.Method = cmp.Or(o.Cancellation.Method, "$/cancelRequest")
	o.Cancellation.Member = cmp.Or(o.Cancellation.Member, "id")
	setDefault(&o.MaxLongRunning, 64)
	setDefault(&o.MaxBatch, 1000)
	setDefault(&o.MaxQueued, 16<<20)
	setDefault(&o.MaxLine, 1<<20-1)
	setDefault(&o.Grace, 1500*time.Millisecond)
	setDefault(&o.CallTimeout, 30*time.Second)
	return o
}

func setDefault[T int | time.Duration](field *T, value T) {
	if *field <= 0 {
		*field = value
	}
}

// A Server serves the methods of one registry on any number of connections.
// All its methods may be called from any goroutine.
type Server struct {
	reg  *Registry
	opts Options

	mu    sync.Mutex // guards the fields below
	conns map[*Conn]struct{}
	ended int // connections that have ended, up to manyEnded

	numbers atomic.Uint64 // of connections
}

// New makes a Server of the methods in reg.
func New(reg *Registry, opts Options) *Server {
	return &Server{reg: reg, opts: opts.withDefaults(), conns: make(map[*Conn]struct{})}
}

// connect makes a Conn and counts it.
func (s *Server) connect(ctx context.Context, t Transport, f frame.Framing, head []byte) *Conn {
	c := newConn(ctx, s, t, f, head)
	s.mu.Lock()
	s.conns[c] = struct{}{}
	s.mu.Unlock()
	return c
}

// manyEnded is the number of ended connections that leave enough memory behind to be worth
// returning.
const manyEnded = 100

func (s *Server) forget(c *Conn) {
	s.mu.Lock()
	delete(s.conns, c)
	s.ended++
	release := s.ended == manyEnded
	if release {
		s.ended = 0
	}
	s.mu.Unlock()
	if s.opts.Observer.Ended != nil {
		s.opts.Observer.Ended()
	}
	if release && s.opts.Observer.Released != nil {
		s.opts.Observer.Released()
	}
}

// ConnCount returns the number of connections being served.
func (s *Server) ConnCount() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.conns)
}

// Broadcast sends a notification to every connection and returns how many it reached. It does
// not wait for room: it skips a peer that has not read earlier messages, and logs that. params
// must encode to JSON; nil means none.
func (s *Server) Broadcast(method string, params any) (int, error) {
	body, err := notification(method, params)
	if err != nil {
		return 0, err
	}
	s.mu.Lock()
	conns := slices.Collect(maps.Keys(s.conns))
	s.mu.Unlock()
	reached := 0
	for _, c := range conns {
		if c.out.trySend(body) {
			reached++
		} else {
			c.log.Warn("notification dropped: the peer does not read", "method", method)
		}
	}
	return reached, nil
}

// Method returns the registered method with that name, or nil.
func (s *Server) Method(name string) *Method { return s.reg.lookup([]byte(name)) }
