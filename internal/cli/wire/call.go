package wire

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/duet-rpc/duet-rpc/client"
	"github.com/duet-rpc/duet-rpc/internal/cli/output"
)

// Call calls a method, and returns the result decoded and as it came.
func Call[R any](ctx context.Context, c *client.Client, method string, params any) (result R, raw json.RawMessage, err error) {
	if err := c.Call(ctx, method, params, &raw); err != nil {
		return result, nil, err
	}
	if err := json.Unmarshal(raw, &result); err != nil {
		return result, nil, fmt.Errorf("reading what the hub answered to %s: %w", method, err)
	}
	return result, raw, nil
}

// Refusal is an error with the hub's message alone, on a line, if it is one that
// the hub gave; any other stays as it is.
func Refusal(err error) error {
	var refused *client.Error
	if errors.As(err, &refused) {
		return errors.New(output.Line(strings.TrimPrefix(refused.Message, "Internal error: ")) + accepted(refused))
	}
	return err
}

// accepted are the values that a parameter could have had, where the hub lists them.
func accepted(e *client.Error) string {
	var data struct {
		Accepted []string `json:"accepted"`
	}
	if json.Unmarshal(e.Data, &data) != nil || len(data.Accepted) == 0 {
		return ""
	}
	return output.Line("; there is " + strings.Join(data.Accepted, ", "))
}

// ErrHubGone says that the hub went while something was waited for.
var ErrHubGone = errors.New("the hub has gone; what it ran can be continued once another one runs")

// WhileConnected is a context that ends with the connection: what is waited for
// does not come from another hub.
func WhileConnected(ctx context.Context, c *client.Client) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	off := c.OnState(func(state client.State) {
		if state != client.Connected {
			cancel(ErrHubGone)
		}
	})
	return ctx, func() { off(); cancel(nil) }
}

// OrGone is an error of what was done with a context of WhileConnected, or
// ErrHubGone if the connection's end is why.
func OrGone(ctx context.Context, err error) error {
	if errors.Is(context.Cause(ctx), ErrHubGone) || errors.Is(err, client.ErrDisconnected) {
		return ErrHubGone
	}
	return err
}
