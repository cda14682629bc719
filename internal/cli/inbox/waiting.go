package inbox

import (
	"context"
	"errors"

	"github.com/duet-rpc/duet-rpc/client"
	"github.com/duet-rpc/duet-rpc/internal/wire"
)

// AwaitQuestion waits until somebody asks: a subscription begins with what
// is open.
func AwaitQuestion(ctx context.Context, c *client.Client, session string) error {
	ctx, cancel := wire.WhileConnected(ctx, c)
	defer cancel()
	asked := make(chan struct{}, 1)
	sub, err := c.Subscribe(ctx, client.SubscribeOptions{Types: []string{wire.EventApproval}, Session: session}, func(client.Event) {
		select {
		case asked <- struct{}{}:
		default:
		}
	})
	if err != nil {
		return wire.OrGone(ctx, err)
	}
	defer sub.Close()
	for {
		if open, _, err := wire.OpenApprovals(ctx, c, session); err != nil || len(open) > 0 {
			return err
		}
		select {
		case <-asked: // and perhaps answered by now
		case <-sub.Done():
			return errors.Join(errors.New("the hub sends no more events"), sub.Err())
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// AsksAgain goes before what is asked, where that was answered before.
func AsksAgain(a wire.Approval) string {
	if a.Reopened == "" {
		return ""
	}
	return "again: "
}
