package hub

import (
	"maps"
	"slices"
	"strconv"

	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/store"
)

// diskIsFull is told that a change found no room. What runs at that moment
// cannot be kept any more, so it is cut short: at once with what the reserve has
// room for, else as soon as there is room. What is started later has room.
func (h *Hub) diskIsFull(cause error) {
	if !h.cutShortAll() {
		return // it is being dealt with, or nothing runs
	}
	h.log.Error("the disk is full: what runs is ended", "err", cause)
	if !h.active.Go(h.keepCutShort) {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.keepsCutShort = false
	}
}

// cutShortAll marks all that runs as cut short, and reports whether somebody has
// to begin to keep that.
func (h *Hub) cutShortAll() (begin bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for id := range h.live {
		h.cutShort[id] = struct{}{}
	}
	begin = !h.keepsCutShort && len(h.cutShort) > 0
	h.keepsCutShort = h.keepsCutShort || begin
	return begin
}

// keepCutShort keeps the ends of the runs that a full disk has cut short, and
// returns when there is none any more.
func (h *Hub) keepCutShort() {
	for try := 0; ; try++ {
		err := h.change(h.ctx, h.endCutShort)
		if err != nil && !store.IsFull(err) {
			if !isClosed(err) {
				h.log.Error("runs could not be ended", "err", err)
			}
			h.mu.Lock()
			h.keepsCutShort = false
			h.mu.Unlock()
			return
		}
		h.mu.Lock()
		h.keepsCutShort = len(h.cutShort) > 0
		more := h.keepsCutShort
		h.mu.Unlock()
		if !more {
			return
		}
		if err == nil { // others have come meanwhile
			continue
		}
		if try == 0 { // nothing of what agents do now would be kept
			h.stopCutShort()
		}
		if h.health.AwaitRoom(h.ctx) != nil {
			return
		}
	}
}

var diskFull = outcome{
	code: domain.CodeStoreFull, reason: "disk_full", leaveOpen: true, leaveApprovals: true,
	message: "the disk is full, so this could not go on; free some space and continue it",
}

// endCutShort ends the runs that are cut short, in as few bytes as can be.
func (h *Hub) endCutShort(t store.Tx) error {
	runs := h.cutShortRuns()
	for _, id := range runs {
		run, err := t.Run(h.ctx, id)
		if err != nil {
			return err
		}
		if !canBeCutShort(run.State) {
			continue
		}
		live := h.liveRun(id) // which is forgotten with the commit
		if err := h.failFull(t, run); err != nil {
			return err
		}
		t.AfterCommit(func() { h.stopAgent(live) })
	}
	t.AfterCommit(func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		for _, id := range runs {
			delete(h.cutShort, id)
		}
	})
	return nil
}

// canBeCutShort reports whether a full disk ends a run in a state. One that is
// being interrupted ends by itself.
func canBeCutShort(s domain.State) bool {
	return s == domain.Starting || s == domain.Running || s == domain.WaitingInput
}

// isCutShort reports whether a full disk has cut a run short, and that is not kept
// yet.
func (h *Hub) isCutShort(run int64) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	_, cut := h.cutShort[run]
	return cut
}

func (h *Hub) cutShortRuns() []int64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Sorted(maps.Keys(h.cutShort))
}

// failFull ends a run for which there is no room.
func (h *Hub) failFull(t store.Tx, run domain.Run) error {
	if err := h.noteLeftOpen(t, run.ID); err != nil {
		return err
	}
	if err := h.approvals.KeepQuestions(t, run); err != nil {
		return err
	}
	return h.transition(t, &run, domain.Failed, diskFull)
}

// stopCutShort stops the agents of the runs whose ends cannot be kept yet.
func (h *Hub) stopCutShort() {
	for _, id := range h.cutShortRuns() {
		run, err := h.store.Run(h.ctx, id)
		if err != nil {
			h.log.Error("an agent that is to be ended could not be found", "err", err)
			continue
		}
		if canBeCutShort(run.State) {
			h.stopAgent(h.liveRun(id))
		}
	}
}

// metaLeftOpen is set while there are runs that were ended without closing
// what was open in them: to the id of the first of them. Earlier versions set it
// to 1, which is the id of the first run that there is.
const metaLeftOpen = "unsettled"

// noteLeftOpen notes that a run is ended without closing what is open in it.
func (h *Hub) noteLeftOpen(t store.Tx, run int64) error {
	first, err := h.firstLeftOpen(t)
	if err != nil || first != 0 && first <= run {
		return err
	}
	return t.SetMeta(metaLeftOpen, strconv.FormatInt(run, 10))
}

// firstLeftOpen is the first run in which something may be left open, or 0.
func (h *Hub) firstLeftOpen(t store.Tx) (int64, error) {
	open, err := t.Meta(h.ctx, metaLeftOpen)
	if err != nil || open == "" {
		return 0, err
	}
	run, err := strconv.ParseInt(open, 10, 64)
	if err != nil {
		run = 1 // nobody knows: all are looked at
	}
	return max(run, 1), nil
}

// closeLeftOpen closes what was left open in runs when the disk was full.
func (h *Hub) closeLeftOpen(t store.Tx) error {
	first, err := h.firstLeftOpen(t)
	if err != nil || first == 0 {
		return err
	}
	runs, err := t.RunsFailedWith(h.ctx, domain.CodeStoreFull, first)
	if err != nil {
		return err
	}
	for _, run := range runs {
		if err := h.conversation.End(t, &run); err != nil {
			return err
		}
		if err := h.approvals.SettleAnswers(t, run, false); err != nil {
			return err
		}
	}
	return t.SetMeta(metaLeftOpen, "")
}

// diskHasRoom is told that there is room again after the disk was full, and so is
// a hub that begins: nobody waits for what it does.
func (h *Hub) diskHasRoom() {
	h.store.Enqueue(h.closeLeftOpen, func(err error) {
		if err != nil && !isClosed(err) {
			h.log.Warn("what a full disk left open could not be closed yet", "err", err)
		}
	})
}
