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
	DefaultMaxMessage = frame.DefaultMaxFrame // of an outgoing message: the limit of a server
	DefaultMaxFrame   = 64 << 20              // of an incoming message
	DefaultQueue      = 1024                  // notifications waiting for their handlers
)

// maxQueuedBytes bounds the queue for the handlers, in bytes of params. A single message may be
// longer.
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

// An Option configures a Client.
type Option func(*options)

// WithFraming replaces the target's default framing: [frame.NDJSON] for sockets and openers,
// [frame.LSP] for commands.
func WithFraming(f frame.Framing) Option { return func(o *options) { o.framing = f } }

// WithReconnect sets whether a lost connection is opened again. The default is true for a socket
// and an opener, and false for a command.
func WithReconnect(on bool) Option { return func(o *options) { o.reconnect = &on } }

// WithCallTimeout sets the timeout of calls without their own; 0 or less means none. Default
// [DefaultTimeout].
func WithCallTimeout(d time.Duration) Option { return func(o *options) { o.timeout = d } }

// WithFailFast makes calls fail at once while there is no connection, instead of waiting for one
// within their timeout.
func WithFailFast() Option { return func(o *options) { o.failFast = true } }

// WithLogger sets the logger for warnings: faults of the server, why a subscription could not be
// restored, and handler errors of which the server gets no details. Default: slog.Default().
func WithLogger(l *slog.Logger) Option { return func(o *options) { o.logger = l } }

// WithTrace sets a function that receives each outgoing and incoming message. It borrows the
// message until it returns, and must not block. Messages may contain secrets.
func WithTrace(f func(sent bool, message []byte)) Option {
	return func(o *options) { o.trace = f }
}

// WithLimits bounds incoming messages, for a server that is not trusted with more. A longer
// message is dropped and logged; if it was a response, its call ends with its timeout. Default:
// [DefaultMaxFrame], and package frame's defaults.
func WithLimits(l frame.Limits) Option { return func(o *options) { o.limits = l } }

// WithMaxMessage bounds an outgoing message, in bytes. A longer one is not sent, because a
// server would refuse it; its error is [ErrTooLong]. A server of this project reports its limit
// (initialize, maxFrameBytes). Default [DefaultMaxMessage].
func WithMaxMessage(n int) Option { return func(o *options) { o.maxMessage = n } }

// WithQueue sets how many notifications and messages of streams may wait for their handlers. Default
// [DefaultQueue].
func WithQueue(n int) Option { return func(o *options) { o.queue = n } }

// WithResend sends a call again, at most 5 times within its timeout, if it fails with an error
// of that kind. A relay answers with such an error ("hub_lost") for a server that has gone,
// before there is another one. The old server may have served the call: use [SentOnce] for calls
// that must not run twice.
func WithResend(kind Kind) Option { return func(o *options) { o.resend = kind } }

// WithSetup runs f before the connection is opened, to register handlers that must not miss the
// server's first messages.
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

// complete fills in the defaults of the target.
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

// A CallOption configures one call.
type CallOption func(*callOptions)

// WithTimeout sets the timeout of one call, including the wait for a connection; 0 or less means
// as long as its context.
func WithTimeout(d time.Duration) CallOption { return func(o *callOptions) { o.timeout = d } }

// WithoutWaiting makes one call fail at once while there is no connection.
func WithoutWaiting() CallOption { return func(o *callOptions) { o.failFast = true } }

// SentOnce excludes one call from [WithResend].
func SentOnce() CallOption { return func(o *callOptions) { o.once = true } }

func (c *Client) callOptions(opts []CallOption) callOptions {
	o := callOptions{timeout: c.opts.timeout, failFast: c.opts.failFast}
	for _, set := range opts {
		set(&o)
	}
	return o
}
