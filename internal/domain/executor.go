package domain

import "time"

// A KeyAccess is that an agent asked for the API key of a service.
type KeyAccess struct {
	At        time.Time
	Run       int64
	SessionID string // of the run
	Service   string
	Outcome   string // where the key came from, or why there was none; in words
}

// A Process is an agent that was started and has not ended as far as we know.
type Process struct {
	PID  int
	Mark string // value of DUET_AGENT_MARK in its environment
	Run  int64
}
