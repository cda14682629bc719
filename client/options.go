package client

import (
	"fmt"
	"log/slog"
	"time"

	"github.com/duet-rpc/duet-rpc/frame"
)

// Defaults of the options.
const (
	DefaultTimeout    = 30 * time.Second      // of a call
	DefaultMaxMessage = frame.DefaultMaxFrame // of a message that goes out: what a server takes
	DefaultMaxFrame   = 64 << 20              // of a message that comes in
	DefaultQueue      = 1024                  // notifications that wait for their handlers
)

// maxQueuedBytes bounds what waits for the handlers, in bytes of params, but
// for one message, which may be longer.
const maxQueuedBytes = 16 << 20

type options struct {
	framing    frame.Framing // nil: the target's
	reconnect  *bool         // nil: the target's
	timeout    time.Duration
	failFast   bool
	logger     *slog.Logger
	trace      func(sent bool, message []byte)
	limits     frame.Limits
	maxMessage int
	queue      int
	resend     Kind
	setup      []func(*Client)
}

// An Option changes how a Client works.
type Option func(*options)

// WithFraming sets the framing, where the target's own is not the one:
// [frame.NDJSON] for sockets and openers, [frame.LSP] for commands.
func WithFraming(f frame.Framing) Option { return func(o *options) { o.framing = f } }

// WithReconnect says whether a lost connection is opened again. Unless told,
// a socket and an opener are, and a command is not.
func WithReconnect(on bool) Option { return func(o *options) { o.reconnect = &on } }

// WithCallTimeout sets the timeout of calls that have none of their own;
// 0 or less means none. Default [DefaultTimeout].
func WithCallTimeout(d time.Duration) Option { return func(o *options) { o.timeout = d } }

// WithFailFast makes calls fail at once while there is no connection, instead
// of waiting for one within their timeout.
func WithFailFast() Option { return func(o *options) { o.failFast = true } }

// WithLogger sets where warnings go: what the server did wrong, why a
// subscription could not be restored, and the errors of handlers that the
// server learns no more of than that the log has them. Default: slog.Default().
func WithLogger(l *slog.Logger) Option { return func(o *options) { o.logger = l } }

// WithTrace sets what sees each message that goes out or comes in. It borrows the
// message until it returns, and must not block. What it sees holds secrets.
func WithTrace(f func(sent bool, message []byte)) Option {
	return func(o *options) { o.trace = f }
}

// WithLimits bounds what comes in, for a server that is not trusted with more. A
// message that is longer is dropped, which the log tells; a call whose response
// it was ends with its timeout. Default: [DefaultMaxFrame], and package frame's
// defaults.
func WithLimits(l frame.Limits) Option { return func(o *options) { o.limits = l } }

// WithMaxMessage bounds a message that goes out, in bytes: a longer one is not
// sent, since a server would refuse it, and is an [ErrTooLong]. A server of this
// project says how much it takes (initialize, maxFrameBytes). Default
// [DefaultMaxMessage].
func WithMaxMessage(n int) Option { return func(o *options) { o.maxMessage = n } }

// WithQueue sets how many notifications and events may wait for their
// handlers. Default [DefaultQueue].
func WithQueue(n int) Option { return func(o *options) { o.queue = n } }

// WithResend has a call sent again, at most 5 times within its timeout, that was answered
// with an error of that kind: by a process that stands between and answers for a server
// that has gone, before there is another one ("hub_lost"). The one that has gone may have
// served it: calls that must not be served twice have [SentOnce].
func WithResend(kind Kind) Option { return func(o *options) { o.resend = kind } }

// WithSetup runs f before the connection is opened: the place to register
// handlers that must not miss what the server sends first.
func WithSetup(f func(*Client)) Option { return func(o *options) { o.setup = append(o.setup, f) } }

func newOptions(opts []Option) options {
	o := options{
		timeout: DefaultTimeout, logger: slog.Default(),
		maxMessage: DefaultMaxMessage, queue: DefaultQueue,
	}
	for _, set := range opts {
		set(&o)
	}
	if o.limits.MaxFrame <= 0 {
		o.limits.MaxFrame = DefaultMaxFrame
	}
	return o
}

// complete fills in what the target decides.
func (o *options) complete(t Target) error {
	p := t.properties()
	if o.framing == nil {
		o.framing = p.framing
	}
	switch {
	case o.reconnect == nil:
		o.reconnect = &p.reconnect
	case *o.reconnect && p.once:
		return fmt.Errorf("client: %s cannot be opened again, so there is no reconnecting", t)
	}
	return nil
}

type callOptions struct {
	timeout  time.Duration
	failFast bool
	once     bool
}

// A CallOption changes one call.
type CallOption func(*callOptions)

// WithTimeout sets how long one call may take, with the wait for a connection;
// 0 or less means as long as its context.
func WithTimeout(d time.Duration) CallOption { return func(o *callOptions) { o.timeout = d } }

// WithoutWaiting makes one call fail at once while there is no connection.
func WithoutWaiting() CallOption { return func(o *callOptions) { o.failFast = true } }

// SentOnce excepts one call from [WithResend].
func SentOnce() CallOption { return func(o *callOptions) { o.once = true } }

func (c *Client) callOptions(opts []CallOption) callOptions {
	o := callOptions{timeout: c.opts.timeout, failFast: c.opts.failFast}
	for _, set := range opts {
		set(&o)
	}
	return o
}
