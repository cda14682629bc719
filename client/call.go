package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// Call sends a request and decodes its result into result, a pointer or nil. params must encode
// to JSON; nil means none.
//
// The error is an [*Error] if the server answered with one; [ErrTimeout] after the call's
// timeout ([WithTimeout], [DefaultTimeout]); the context's error when ctx ends; a
// [*DisconnectedError] as soon as the connection is lost; [ErrClosed] after Close. Without a
// connection, a call waits for one within its timeout ([WithFailFast]). When it times out or ctx
// ends, the client sends $/cancelRequest.
func (c *Client) Call(ctx context.Context, method string, params, result any, opts ...CallOption) error {
	raw, err := c.request(ctx, method, params, c.callOptions(opts))
	if err != nil || result == nil {
		return err
	}
	if err := json.Unmarshal(raw, result); err != nil {
		return fmt.Errorf("client: %s: decode the result: %w", method, err)
	}
	return nil
}

// Notify sends a notification, which has no response. It waits for a connection, and for a
// server that does not read, within the timeout of a call. nil means only that the connection
// has accepted the notification.
func (c *Client) Notify(ctx context.Context, method string, params any, opts ...CallOption) error {
	o := c.callOptions(opts)
	raw, err := c.encode(method, params)
	if err != nil {
		return err
	}
	ctx, done := limit(ctx, o.timeout)
	defer done()
	for {
		l, err := c.connected(ctx, o.failFast)
		if err == nil {
			err = l.send(ctx, message{JSONRPC: "2.0", Method: method, Params: raw})
			if unsent(err) && !o.failFast {
				continue
			}
		}
		return c.failure(ctx, method, o.timeout, err)
	}
}

// request is Call without the decoding.
func (c *Client) request(ctx context.Context, method string, params any, o callOptions) (json.RawMessage, error) {
	raw, err := c.encode(method, params)
	if err != nil {
		return nil, err
	}
	ctx, done := limit(ctx, o.timeout)
	defer done()
	for resent := 0; ; {
		l, err := c.connected(ctx, o.failFast)
		var result json.RawMessage
		if err == nil {
			var sent bool
			result, sent, err = l.call(ctx, c.lastID.Add(1), method, raw, nil)
			if !sent && unsent(err) && !o.failFast {
				continue // on the next connection
			}
			if !o.once && resent < mostResent && c.isToResend(err) {
				resent++
				continue
			}
		}
		return result, c.failure(ctx, method, o.timeout, err)
	}
}

// mostResent is how often a call is sent again.
const mostResent = 5

// isToResend reports whether a request that failed with err is sent again.
func (c *Client) isToResend(err error) bool {
	return c.opts.resend != "" && KindOf(err) == c.opts.resend
}

// unsent reports whether err says that the request was not sent because the connection is gone.
func unsent(err error) bool {
	d, ok := errors.AsType[*DisconnectedError](err)
	return ok && !d.Sent
}

// limit gives ctx the call's own timeout, with ErrTimeout as its cause.
func limit(ctx context.Context, timeout time.Duration) (context.Context, context.CancelFunc) {
	if timeout <= 0 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeoutCause(ctx, timeout, ErrTimeout)
}

// failure converts err to the error of the caller.
func (c *Client) failure(ctx context.Context, method string, timeout time.Duration, err error) error {
	if err == nil {
		return nil
	}
	if e, ok := err.(*Error); ok {
		return e
	}
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) && context.Cause(ctx) == ErrTimeout {
		timeoutErr := fmt.Errorf("client: %s: %w after %s", method, ErrTimeout, timeout)
		if d, ok := errors.AsType[*DisconnectedError](err); ok {
			return fmt.Errorf("%w: %w", timeoutErr, d)
		}
		return timeoutErr
	}
	return fmt.Errorf("client: %s: %w", method, err)
}

// encode encodes params, and checks the length of the message.
func (c *Client) encode(method string, params any) (json.RawMessage, error) {
	const envelope = 64 // and some room
	var raw json.RawMessage
	if params != nil {
		var err error
		if raw, err = encodeJSON(params); err != nil {
			return nil, fmt.Errorf("client: %s: encode the params: %w", method, err)
		}
	}
	if n := len(raw) + len(method) + envelope; n > c.opts.maxMessage {
		return nil, fmt.Errorf("client: %s: %w: %d bytes, and the limit is %d",
			method, ErrTooLong, n, c.opts.maxMessage)
	}
	return raw, nil
}

// encodeJSON is json.Marshal without HTML escapes.
func encodeJSON(v any) (json.RawMessage, error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(buf.Bytes(), []byte("\n")), nil
}
