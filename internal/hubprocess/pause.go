package hubprocess

import (
	"context"
	"time"
)

// A Pause is how long who waits for another process waits before it looks again:
// nothing tells when that listens, or has given up a lock. Each is half as long
// again as the one before. The zero value is the first.
type Pause time.Duration

const (
	firstPause = 10 * time.Millisecond
	lastPause  = 200 * time.Millisecond
)

// Wait waits, or gives the error of ctx if that ends before.
func (p *Pause) Wait(ctx context.Context) error {
	*p = min(max(*p*3/2, Pause(firstPause)), Pause(lastPause))
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(time.Duration(*p)):
		return nil
	}
}
