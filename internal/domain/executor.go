package domain

import "time"

// A Token lets an executor speak for a run of a thread, for as long as the run
// lasts. Only its hash is kept.
type Token struct {
	Hash   []byte // SHA-256
	Thread int64
	Run    int64
}

// A KeyAccess is an entry of the audit log of keys.
type KeyAccess struct {
	At      time.Time
	Run     int64
	Service string
	Outcome string
}

// A Process is an agent that was started and has not ended as far as we know.
type Process struct {
	PID  int
	Mark string // value of DUET_AGENT in its environment
	Run  int64
}
