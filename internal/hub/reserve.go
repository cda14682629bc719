package hub

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/duet-rpc/duet-rpc/internal/store"

	"github.com/duet-rpc/duet-rpc/internal/domain"
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

// FreeReserve gives up what a hub that has ended has set aside on the disk for
// the moment at which that is full. It is an error if there is nothing.
func FreeReserve(database string) error { return os.Remove(reservePath(database)) }

const fullIssue = "the disk is full; free some space"

// diskIsFull is told that a commit found no room. What runs at that moment
// cannot be kept any more, so it is ended: at once with what the reserve has
// room for, else as soon as there is room. What is started later has room.
func (h *Hub) diskIsFull(cause error) {
	h.setIssue("disk", fullIssue)
	h.full.Store(true)
	h.reserve.release()
	if !h.doom() {
		return // it is being dealt with, or nothing runs
	}
	h.log.Error("the disk is full: what runs is ended", "err", cause)
	h.active.Go(h.endDoomed)
}

// doom marks what runs as what a full disk does not let go on, and reports
// whether somebody has to begin to end it.
func (h *Hub) doom() (begin bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for id := range h.live {
		h.doomed[id] = struct{}{}
	}
	begin = !h.ending && len(h.doomed) > 0
	h.ending = h.ending || begin
	return begin
}

// endDoomed ends the runs that a full disk does not let go on.
func (h *Hub) endDoomed() {
	for try := 0; ; try++ {
		err := h.store.Write(h.ctx, h.endAll)
		if err != nil && !store.IsFull(err) {
			if !isClosed(err) {
				h.log.Error("runs could not be ended", "err", err)
			}
			h.mu.Lock()
			h.ending = false
			h.mu.Unlock()
			return
		}
		h.mu.Lock()
		h.ending = len(h.doomed) > 0
		ending := h.ending
		h.mu.Unlock()
		if !ending {
			return
		}
		if err == nil { // others have come meanwhile
			continue
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
}

// fullRetry is how often it is tried whether a full disk has room again for
// what has to be kept.
const fullRetry = time.Second

var diskFull = outcome{
	code: codeStoreFull, reason: "disk_full", leaveOpen: true, leaveApprovals: true,
	message: "the disk is full, so this could not go on; free some space and continue it",
}

// endAll ends the runs that are doomed, in as few bytes as can be.
func (h *Hub) endAll(t store.Tx) error {
	doomed := h.doomedRuns()
	for _, id := range doomed {
		run, err := t.Run(h.ctx, id)
		if err != nil {
			return err
		}
		if !endsWhenFull(run.State) {
			continue
		}
		if err := h.failFull(t, run); err != nil {
			return err
		}
		h.endAgent(t, run)
	}
	t.AfterCommit(func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		for _, id := range doomed {
			delete(h.doomed, id)
		}
	})
	return nil
}

// endsWhenFull reports whether a run in a state is ended by a full disk. One
// that is being interrupted ends by itself.
func endsWhenFull(s domain.State) bool {
	return s == domain.Starting || s == domain.Running || s == domain.WaitingInput
}

// isDoomed reports whether a full disk does not let a run go on.
func (h *Hub) isDoomed(run int64) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	_, doomed := h.doomed[run]
	return doomed
}

func (h *Hub) doomedRuns() []int64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Sorted(maps.Keys(h.doomed))
}

// failFull ends a run for which there is no room.
func (h *Hub) failFull(t store.Tx, run domain.Run) error {
	if err := t.SetMeta(metaUnsettled, "1"); err != nil {
		return err
	}
	if err := h.approvals.Keep(t, run); err != nil {
		return err
	}
	return h.transition(t, &run, domain.Failed, diskFull)
}

// stopAgents ends the agents of the runs whose ends cannot be kept yet.
func (h *Hub) stopAgents() {
	for _, id := range h.doomedRuns() {
		run, err := h.store.Run(h.ctx, id)
		if err != nil {
			h.log.Error("an agent that is to be ended could not be found", "err", err)
			continue
		}
		if endsWhenFull(run.State) {
			h.endLive(run)
		}
	}
}

// metaUnsettled is set while there are runs that were ended without closing
// what was open in them.
const metaUnsettled = "unsettled"

// settle closes what was left open in runs when the disk was full.
func (h *Hub) settle(t store.Tx) error {
	if open, err := t.Meta(h.ctx, metaUnsettled); err != nil || open == "" {
		return err
	}
	runs, err := t.RunsIn(h.ctx, domain.Failed)
	if err != nil {
		return err
	}
	for _, run := range runs {
		if run.ErrorCode != codeStoreFull {
			continue
		}
		if err := h.conversation.End(t, &run); err != nil {
			return err
		}
		if err := h.approvals.RunEnded(t, run, false); err != nil {
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
func (h *Hub) endAgent(t store.Tx, run domain.Run) {
	h.mu.Lock()
	live := h.live[run.ID]
	h.mu.Unlock()
	if live != nil {
		t.AfterCommit(func() { go live.stop(h, run) })
	}
}

// endLive ends the agent of a run that has not ended yet.
func (h *Hub) endLive(run domain.Run) {
	h.mu.Lock()
	live := h.live[run.ID]
	h.mu.Unlock()
	if live != nil {
		go live.stop(h, run)
	}
}
