package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/sourcegraph/jsonrpc2"

	"github.com/duet-rpc/duet-rpc/frame"
)

// ErrInline is what Call returns to a handler that is inline: the reply could
// not be read before the handler returns. The method has to be [LongRunning].
var ErrInline = errors.New("server: Call from an inline handler would wait for itself; register the method with LongRunning")

// outgoing is a request of ours, or a notification, which has no id.
type outgoing struct {
	JSONRPC string `json:"jsonrpc"`
	ID      uint64 `json:"id,omitempty"`
	Method  string `json:"method"`
	Params  any    `json:"params,omitempty"`
}

func notification(method string, params any) ([]byte, error) {
	return frame.Encode(outgoing{JSONRPC: "2.0", Method: method, Params: params})
}

// Call sends a request to the peer and decodes the result into result, a
// pointer or nil. params must encode to JSON; nil means none. Without a deadline
// in ctx it waits Options.CallTimeout. It fails with the peer's own error, a
// *jsonrpc2.Error; with jsonrpc2.ErrClosed if the connection ended first; with
// the error of ctx; with [ErrInline] in an inline handler. The peer is told of a
// Call that was given up if [Cancellation] says so.
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
	body, err := frame.Encode(outgoing{"2.0", id, method, params})
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
			c.takeBack(id)
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

// takeBack tells the peer that nobody waits for the request of that id any more. It
// does not wait for room.
func (c *Conn) takeBack(id uint64) {
	how := c.srv.opts.Cancellation
	body, err := notification(how.Method, map[string]uint64{how.Member: id})
	if err == nil && !c.out.trySend(body) {
		c.log.Warn("the peer was not told of a request that was given up: it does not read", "id", id)
	}
}

// peerError is the error of a response, whatever the peer made of it.
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

// closedError makes one error of all that say that nothing can be sent any more.
func closedError(err error) error {
	if errors.Is(err, errClosed) || IsGone(err) {
		return jsonrpc2.ErrClosed
	}
	return err
}

// Notify sends a notification to the peer. If the peer does not read, it
// waits for room as long as ctx lasts, but no longer than Options.CallTimeout.
// When the connection has ended the error is jsonrpc2.ErrClosed; nil means that
// the notification is queued, no more. params must encode to JSON; nil means
// none.
func (c *Conn) Notify(ctx context.Context, method string, params any) error {
	body, err := notification(method, params)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, c.srv.opts.CallTimeout)
	defer cancel()
	return closedError(c.out.send(ctx, body))
}

// ErrTooLong is what Send returns for a message that does not fit into a line.
var ErrTooLong = errors.New("server: the message does not fit into a line")

// Send sends messages, each of which must encode to JSON, as they are: not
// every dialect of JSON-RPC has notifications that the specification knows.
// Several go out together: with one write, if the peer has room for them, so
// that it gets all or none. If the peer does not read, Send waits for room as
// long as ctx and the connection last, without a limit of its own. If one is
// longer than MaxMessage none is sent: ErrTooLong. When the connection has ended
// the error is jsonrpc2.ErrClosed; nil means that they are queued, no more.
func (c *Conn) Send(ctx context.Context, messages ...any) error {
	bodies := make([][]byte, len(messages))
	for i, message := range messages {
		body, err := frame.Encode(message)
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

// MaxMessage is how long a message may be that goes out, in bytes:
// Options.MaxLine where a message is a line, else 0, which means no limit.
func (c *Conn) MaxMessage() int {
	if c.oneLine {
		return c.srv.opts.MaxLine
	}
	return 0
}
