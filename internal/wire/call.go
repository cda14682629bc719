package wire

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/duet-rpc/duet-rpc/client"
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

// KindHubLost is the kind of the error of a request whose hub has gone before it answered,
// told by the process that stands between.
const KindHubLost client.Kind = "hub_lost"

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
