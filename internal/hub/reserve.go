package hub

import (
	"os"
	"path/filepath"
	"sync"

	"github.com/duet-rpc/duet-rpc/internal/store"
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

// missing reports whether there is no reserve.
func (r *reserve) missing() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return !r.held
}

// release gives the reserve up, and reports whether there was one.
func (r *reserve) release() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	held := r.held
	r.held = false
	return os.Remove(r.path) == nil && held
}

// diskIsFull is told that a commit found no room. What runs cannot be kept
// any more, so it is ended, with what the reserve has room for.
func (h *Hub) diskIsFull(cause error) {
	h.setIssue("disk", "the disk is full; free some space")
	if !h.reserve.release() {
		return // it is being dealt with
	}
	h.log.Error("the disk is full: what runs is ended", "err", cause)
	h.intake.take() // there is no room for it
	h.store.Enqueue(func(t *store.Tx) error {
		runs, err := t.RunsIn(h.ctx, store.Starting, store.Running, store.WaitingInput)
		if err != nil {
			return err
		}
		for _, run := range runs {
			delete(h.folds, run.ID)
			if err := h.transition(t, &run, store.Failed, outcome{
				code: codeStoreFull, reason: "disk_full", message: "the disk is full, so this could not go on; free some space and continue it",
			}); err != nil {
				return err
			}
			h.endAgent(t, run)
		}
		return nil
	}, func(err error) {
		if err != nil && !isClosed(err) {
			h.log.Error("runs could not be ended", "err", err)
		}
	})
}

// enoughBytes is how much room there must be before a reserve is set aside
// again.
const enoughBytes = 8 * reserveBytes

// diskHasRoom is told that a commit went well while there was no reserve.
func (h *Hub) diskHasRoom() {
	if h.store.FreeBytes() >= enoughBytes {
		h.reserve.hold()
		h.setIssue("disk", "")
	}
}

// endAgent ends the agent of a run that has ended otherwise.
func (h *Hub) endAgent(t *store.Tx, run Run) {
	h.mu.Lock()
	live := h.live[run.ID]
	h.mu.Unlock()
	if live != nil {
		t.AfterCommit(func() { go live.stop(h, run) })
	}
}
