package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/sourcegraph/jsonrpc2"

	"github.com/duet-rpc/duet-rpc/frame"
	"github.com/duet-rpc/duet-rpc/internal/rawjson"
)

// ErrInline is the error of Call in an inline handler: the reply could not be read before the
// handler returns. Register the method as [LongRunning].
var ErrInline = errors.New("server: Call from an inline handler would wait for itself; register the method with LongRunning")

// outgoing is a request to the peer, or a notification, which has no id.
type outgoing struct {
	JSONRPC string `json:"jsonrpc"`
	ID      uint64 `json:"id,omitempty"`
	Method  string `json:"method"`
	Params  any    `json:"params,omitempty"`
}

func notification(method string, params any) ([]byte, error) {
	return rawjson.Encode(outgoing{JSONRPC: "2.0", Method: method, Params: params})
}

// Call sends a request to the peer and decodes the result into result, a pointer or nil. params
// must encode to JSON; nil means none. If ctx has no deadline Call waits Options.CallTimeout.
//
// Its error is the peer's own, a *jsonrpc2.Error; jsonrpc2.ErrClosed if the connection ended
// first; the error of ctx; or [ErrInline] in an inline handler. When Call gives up it notifies
// the peer, if [Cancellation] says so.
func (c *Conn) Call(ctx context.Context, method string, params, result any) error {
	if ctx.Value(inlineKey{}) != nil && ConnFrom(ctx) == c {
		return ErrInline
	}
	if _, has := ctx.Deadline(); !has {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, c.srv.opts.CallTimeout)
		defer cancel()
	}
	id := c.lastCall.Add(1)
	body, err := rawjson.Encode(outgoing{"2.0", id, method, params})
	if err != nil {
		return err
	}
	call, err := c.calls.Begin(id, nil)
	if err != nil {
		return err
	}
	if err := c.out.send(ctx, body); err != nil {
		call.Abandon()
		return closedError(err)
	}
	response, err := call.Wait(ctx)
	switch {
	case err != nil:
		if c.srv.opts.Cancellation.Tell && ctx.Err() != nil {
			c.cancelCall(id)
		}
		return err
	case response.Error != nil:
		return peerError(response.Error)
	case result != nil:
		if err := json.Unmarshal(response.Result, result); err != nil {
			return fmt.Errorf("server: %s: decode the result: %w", method, err)
		}
	}
	return nil
}

// cancelCall notifies the peer that the request of that id was given up. It does not wait for
// room.
func (c *Conn) cancelCall(id uint64) {
	how := c.srv.opts.Cancellation
	body, err := notification(how.Method, map[string]uint64{how.Member: id})
	if err == nil && !c.out.trySend(body) {
		c.log.Warn("cannot tell the peer that a request was cancelled: it does not read", "id", id)
	}
}

// peerError returns the error of a response, even if it is malformed.
func peerError(raw []byte) *jsonrpc2.Error {
	var e jsonrpc2.Error
	if json.Unmarshal(raw, &e) != nil {
		return &jsonrpc2.Error{Code: jsonrpc2.CodeInternalError, Message: "the peer answered with a malformed error"}
	}
	return &e
}

// serveResponse takes a message that has no method, and reports whether it is a
// response.
func (c *Conn) serveResponse(m *frame.Message) bool {
	switch {
	case c.calls.Deliver(m):
	case c.srv.opts.OnResponse != nil:
		c.srv.opts.OnResponse(c, m)
	case m.Result == nil && m.Error == nil:
		return false
	default:
		c.log.Warn("response ignored: no request of ours waits for it", "id", frame.Excerpt(string(m.ID)))
	}
	return true
}

// closedError maps all errors of a closed connection to one.
func closedError(err error) error {
	if errors.Is(err, errClosed) || IsGone(err) {
		return jsonrpc2.ErrClosed
	}
	return err
}

// Notify sends a notification to the peer. If the peer does not read, Notify waits for room
// until ctx ends, but no longer than Options.CallTimeout. After the connection has ended the
// error is jsonrpc2.ErrClosed. nil means only that the notification is queued. params must
// encode to JSON; nil means none.
func (c *Conn) Notify(ctx context.Context, method string, params any) error {
	body, err := notification(method, params)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, c.srv.opts.CallTimeout)
	defer cancel()
	return closedError(c.out.send(ctx, body))
}

// ErrTooLong is the error of Send for a message that does not fit into a line.
var ErrTooLong = errors.New("server: the message does not fit into a line")

// Send sends messages, each of which must encode to JSON, as they are: some dialects of JSON-RPC
// have notifications outside the specification. Several messages go out together, with one write
// if the peer has room for them, so that it gets all or none.
//
// If the peer does not read, Send waits for room until ctx or the connection ends, without a
// limit of its own. If a message is longer than MaxMessage, Send sends none and returns
// ErrTooLong. After the connection has ended the error is jsonrpc2.ErrClosed. nil means only
// that the messages are queued.
func (c *Conn) Send(ctx context.Context, messages ...any) error {
	bodies := make([][]byte, len(messages))
	for i, message := range messages {
		body, err := rawjson.Encode(message)
		if err != nil {
			return err
		}
		if c.oneLine {
			body = compactLine(body)
		}
		if most := c.MaxMessage(); most > 0 && len(body) > most {
			return ErrTooLong
		}
		bodies[i] = body
	}
	return closedError(c.out.send(ctx, bodies...))
}

// MaxMessage returns the maximum length of an outgoing message, in bytes: Options.MaxLine if a
// message is a line, else 0, which means no limit.
func (c *Conn) MaxMessage() int {
	if c.oneLine {
		return c.srv.opts.MaxLine
	}
	return 0
}
