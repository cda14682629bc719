package health

import (
	"os"
	"path/filepath"
	"sync"
)

// reserveBytes is how much of the disk is set aside, so that there is room to
// say that it is full.
const reserveBytes = 1 << 20

// A reserve is a file that is given up when the disk is full.
type reserve struct {
	path string

	mu   sync.Mutex // guards held
	held bool
}

func reservePath(database string) string { return filepath.Join(filepath.Dir(database), "reserve") }

// hold sets the reserve aside. Where there is no room for it there is none.
func (r *reserve) hold() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.held {
		return
	}
	if info, err := os.Stat(r.path); err == nil && info.Size() == reserveBytes {
		r.held = true
		return
	}
	// Zeros that are written are blocks that are taken; a hole would be none.
	if err := os.WriteFile(r.path, make([]byte, reserveBytes), 0o600); err != nil {
		os.Remove(r.path)
		return
	}
	r.held = true
}

// release gives the reserve up, if there is one.
func (r *reserve) release() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.held = false
	_ = os.Remove(r.path)
}

// FreeReserve gives up what a process that has ended has set aside on the disk for
// the moment at which that is full. It is an error if there is nothing.
func FreeReserve(database string) error { return os.Remove(reservePath(database)) }
