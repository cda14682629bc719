package acp

import "sync"

// A record is what is known of an agent's session beyond one turn. A Replay has one of its own. The
// zero value is that of an agent that has reported nothing.
type record struct {
	settings   settingState
	background backgroundWork
	shown      ownTerminals
	subagents  subagents
	spent      spending
}

// A spending is the cost of an agent's session so far, in USD.
type spending struct {
	mu  sync.Mutex // guards usd
	usd float64
}

func (s *spending) set(usd float64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.usd = usd
}

func (s *spending) soFar() float64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.usd
}
