package turn

import (
	"context"
	"time"

	"github.com/duet-rpc/duet-rpc/client"
)

// ping asks a hub for a sign of life. An error is one too; where the connection
// is lost the context ends.
func ping(c *client.Client) func(context.Context) {
	return func(ctx context.Context) { _ = c.Call(ctx, "ping", nil, nil) }
}

// watchSilence asks the hub for a sign of life all the time, and says so when it
// gives none within a time, in the words of why, and when it answers again. It
// returns when ctx ends.
func watchSilence(ctx context.Context, ping func(context.Context), within time.Duration, why func() string, say chan<- string) {
	tell := func(text string) {
		select {
		case say <- text:
		case <-ctx.Done():
		}
	}
	for ctx.Err() == nil {
		answered := make(chan struct{})
		go func() {
			defer close(answered)
			ping(ctx)
		}()
		if !comes(ctx, answered, within) && !comes(ctx, answered, within/4) { // twice: we may have been stopped ourselves
			tell(why())
			<-answered
			tell("the hub answers again")
		}
		<-answered
		select {
		case <-time.After(within):
		case <-ctx.Done():
		}
	}
}

// comes waits for something, or for the end of ctx, and reports whether it was
// in time.
func comes(ctx context.Context, what <-chan struct{}, within time.Duration) bool {
	select {
	case <-what:
		return true
	case <-ctx.Done():
		return true
	case <-time.After(within):
		return false
	}
}
