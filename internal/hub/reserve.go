package hub

import (
	"os"
	"path/filepath"
	"sync"
	"time"

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

// release gives the reserve up, if there is one.
func (r *reserve) release() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.held = false
	_ = os.Remove(r.path)
}

const fullIssue = "the disk is full; free some space"

// diskIsFull is told that a commit found no room. What runs cannot be kept
// any more, so it is ended: at once with what the reserve has room for, else
// as soon as there is room.
func (h *Hub) diskIsFull(cause error) {
	h.setIssue("disk", fullIssue)
	h.full.Store(true)
	h.reserve.release()
	if !h.ending.CompareAndSwap(false, true) {
		return // it is being dealt with
	}
	h.log.Error("the disk is full: what runs is ended", "err", cause)
	h.active.Go(func() {
		defer h.ending.Store(false)
		for try := 0; ; try++ {
			err := h.store.Write(h.ctx, h.endAll)
			if !store.IsFull(err) {
				if err != nil && !isClosed(err) {
					h.log.Error("runs could not be ended", "err", err)
				}
				return
			}
			if try == 0 { // nothing of what agents do now would be kept
				h.stopAgents()
			}
			select {
			case <-h.ctx.Done():
				return
			case <-time.After(fullRetry):
			}
		}
	})
}

// fullRetry is how often it is tried whether a full disk has room again for
// what has to be kept.
const fullRetry = time.Second

var diskFull = outcome{
	code: codeStoreFull, reason: "disk_full", leaveOpen: true, leaveApprovals: true,
	message: "the disk is full, so this could not go on; free some space and continue it",
}

// endAll ends what runs, in as few bytes as can be.
func (h *Hub) endAll(t *store.Tx) error {
	h.dropReports()
	clear(h.folds) // they may have what was not kept
	runs, err := t.RunsIn(h.ctx, store.Starting, store.Running, store.WaitingInput)
	if err != nil {
		return err
	}
	for _, run := range runs {
		if err := h.failFull(t, run); err != nil {
			return err
		}
		h.endAgent(t, run)
	}
	return nil
}

// dropReports drops what waits: there is no room for it.
func (h *Hub) dropReports() {
	if _, resume := h.intake.take(); resume {
		h.pauseExecutors(false)
	}
}

// failFull ends a run for which there is no room.
func (h *Hub) failFull(t *store.Tx, run Run) error {
	if err := t.SetMeta(metaUnsettled, "1"); err != nil {
		return err
	}
	if err := h.keepApprovals(t, run); err != nil {
		return err
	}
	return h.transition(t, &run, store.Failed, diskFull)
}

// stopAgents ends the agents of all runs, whose ends cannot be kept yet.
func (h *Hub) stopAgents() {
	runs, err := h.store.RunsIn(h.ctx, store.Starting, store.Running, store.WaitingInput)
	if err != nil {
		h.log.Error("the agents that run could not be found", "err", err)
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, run := range runs {
		if live := h.live[run.ID]; live != nil {
			go live.stop(h, run)
		}
	}
}

// metaUnsettled is set while there are runs that were ended without closing
// what was open in them.
const metaUnsettled = "unsettled"

// settle closes what was left open in runs when the disk was full.
func (h *Hub) settle(t *store.Tx) error {
	if open, err := t.Meta(h.ctx, metaUnsettled); err != nil || open == "" {
		return err
	}
	runs, err := t.RunsIn(h.ctx, store.Failed)
	if err != nil {
		return err
	}
	for _, run := range runs {
		if run.ErrorCode != codeStoreFull {
			continue
		}
		if err := h.closeFold(t, &run); err != nil {
			return err
		}
	}
	return t.SetMeta(metaUnsettled, "")
}

// beginSettle settles in the background.
func (h *Hub) beginSettle() {
	h.store.Enqueue(h.settle, func(err error) {
		if err != nil && !isClosed(err) {
			h.log.Warn("what a full disk left open could not be closed yet", "err", err)
		}
	})
}

// enoughBytes is how much room there must be before a reserve is set aside
// again.
const enoughBytes = 8 * reserveBytes

// diskHasRoom is told that a commit went well after the disk was full.
func (h *Hub) diskHasRoom() {
	if h.store.FreeBytes() >= enoughBytes {
		h.full.Store(false)
		h.reserve.hold()
		h.setIssue("disk", "")
		h.beginSettle()
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
