package main

import (
	"context"
	"time"

	"github.com/duet-rpc/duet-rpc/client"
	"github.com/duet-rpc/duet-rpc/internal/host"
)

// watchSilence asks the hub for a sign of life all the time, and tells when it
// gives none for a while, by what why says then, and when it answers again. It
// ends with ctx.
func watchSilence(ctx context.Context, c *client.Client, within time.Duration, why func() string) <-chan string {
	told := make(chan string)
	tell := func(text string) {
		select {
		case told <- text:
		case <-ctx.Done():
		}
	}
	go func() {
		for ctx.Err() == nil {
			answered := make(chan struct{})
			go func() {
				defer close(answered)
				_ = c.Call(ctx, "ping", nil, nil) // an error is an answer; where the connection is lost, ctx ends
			}()
			if !comes(ctx, answered, within) && !comes(ctx, answered, within/4) { // twice: we may have been stopped ourselves
				tell(why())
				select {
				case <-answered:
					tell("the hub answers again")
				case <-ctx.Done():
				}
			}
			select {
			case <-time.After(within):
			case <-ctx.Done():
			}
		}
	}()
	return told
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

// whySilent says of a hub that has been reached before why it does not answer.
func whySilent(ctx context.Context, s *settings) string {
	silent := &host.SilentError{Held: true}
	if p, err := s.Project(); err == nil {
		silent.PID, _ = p.Holder(ctx)
	}
	return silent.Error()
}
