package hubprocess

import (
	"context"
	"time"
)

// A Pause is the wait between two attempts to reach another process: no event reports when it
// listens, or has released a lock. Each pause is half as long again as the previous one. The
// zero value is the first.
type Pause time.Duration

const (
	firstPause = 10 * time.Millisecond
	lastPause  = 200 * time.Millisecond
)

// Wait waits, or returns the error of ctx if that ends first.
func (p *Pause) Wait(ctx context.Context) error {
	*p = min(max(*p*3/2, Pause(firstPause)), Pause(lastPause))
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(time.Duration(*p)):
		return nil
	}
}
