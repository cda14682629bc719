package eventlog

import (
	"context"
	"slices"
	"sync"
)

// A progress is how far somebody has come in the log, for those who wait for that.
type progress struct {
	mu      sync.Mutex // guards the fields below
	reached int64
	waiting []awaited
}

// An awaited is somebody who waits until a seq is reached.
type awaited struct {
	seq     int64
	reached chan struct{}
}

// reach lets those go on who wait for seq, or for less.
func (p *progress) reach(seq int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.reached = seq
	p.waiting = slices.DeleteFunc(p.waiting, func(a awaited) bool {
		if a.seq > seq {
			return false
		}
		close(a.reached)
		return true
	})
}

// await waits until seq is reached, or nothing will be any more. The error is that of
// ctx if it ends first.
func (p *progress) await(ctx context.Context, seq int64, ended <-chan struct{}) error {
	a := awaited{seq, make(chan struct{})}
	p.mu.Lock()
	if p.reached >= seq {
		p.mu.Unlock()
		return nil
	}
	p.waiting = append(p.waiting, a)
	p.mu.Unlock()
	select {
	case <-a.reached:
	case <-ended:
	case <-ctx.Done():
		return ctx.Err()
	}
	return nil
}
