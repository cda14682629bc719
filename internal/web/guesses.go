package web

import (
	"sync"
	"time"
)

// After mostGuesses wrong codes, no device is paired for blockLasts. All browsers share the count: on a loopback address they all have the same one.
const (
	mostGuesses = 10
	blockLasts  = 5 * time.Minute
)

// guesses counts wrong codes.
type guesses struct {
	mu      sync.Mutex
	wrong   int
	blocked time.Time // until then
}

// blockedFor returns how long no code counts; 0: codes count.
func (g *guesses) blockedFor(now time.Time) time.Duration {
	g.mu.Lock()
	defer g.mu.Unlock()
	return max(0, g.blocked.Sub(now))
}

// wrongCode counts one, and reports whether it was one too many.
func (g *guesses) wrongCode(now time.Time) (blocks bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.wrong++; g.wrong < mostGuesses {
		return false
	}
	g.wrong, g.blocked = 0, now.Add(blockLasts)
	return true
}

// rightCode begins to count anew.
func (g *guesses) rightCode() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.wrong = 0
}
