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

// watchSilence pings the hub again and again. It sends true when the hub gives no
// answer within a time, and false when it answers again. It returns when ctx ends.
func watchSilence(ctx context.Context, ping func(context.Context), within time.Duration, silent chan<- bool) {
	tell := func(is bool) {
		select {
		case silent <- is:
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
			tell(true)
			<-answered
			tell(false)
		}
		<-answered
		select {
		case <-time.After(within):
		case <-ctx.Done():
		}
	}
}

// hubSilent says, with note, that the hub does not answer, or that it answers again.
func (a *asker) hubSilent(silent bool, note func(string)) {
	if !silent {
		a.hubHeard(note)
		return
	}
	a.isHubSilent = true
	note(a.WhySilent())
}

// hubHeard says, with note, that a hub that did not answer answers again. It comes before
// anything else that the hub sends: the session may end with that.
func (a *asker) hubHeard(note func(string)) {
	if a.isHubSilent {
		a.isHubSilent = false
		note("the hub answers again")
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
