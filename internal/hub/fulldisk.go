package hub

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strconv"
	"sync"

	"github.com/duet-rpc/duet-rpc/internal/background"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/store"
)

// This file ends turns that cannot continue because the disk is full. When space is free again, it
// closes what they left open.

const (
	reasonDiskFull = "disk_full"
)

// messageDiskFull is the error of turns that a full or failing disk has stopped.
func messageDiskFull(cause error) string {
	problem, todo := store.FullTexts(cause)
	return problem + ", so this could not go on; " + todo + ", then continue it"
}

// cutShortByFullDisk holds the turns that a full disk has stopped. Its methods may be called from
// any goroutine; those with a store.Tx belong to the store's writer.
type cutShortByFullDisk struct {
	hub     *Hub
	keeping background.Group

	mu      sync.Mutex         // guards the fields below
	turns   map[int64]struct{} // stopped, and their end is not stored yet
	keeps   bool               // a goroutine is storing the ends
	hadRoom bool               // DiskHasRoom was called meanwhile: too early for these turns
	cause   error              // of the last call of DiskIsFull
}

// Close waits until pending ends are stored, or ctx ends. The hub must be ending.
func (c *cutShortByFullDisk) Close(ctx context.Context) error { return c.keeping.Close(ctx) }

// DiskIsFull stops the active turns after a transaction found no space. It ends them at once if the
// reserve has space, otherwise when space is free. Later turns are not affected.
func (c *cutShortByFullDisk) DiskIsFull(cause error) {
	if !c.markAll(cause) {
		return // already handled, or no turn is active
	}
	c.hub.log.Error("the disk is full or fails: ending all turns", "err", cause)
	if !c.keeping.Go(c.keep) {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.keeps = false
	}
}

// markAll marks all active turns as stopped. begin reports whether the caller must start keep.
func (c *cutShortByFullDisk) markAll(cause error) (begin bool) {
	c.hub.mu.Lock()
	live := slices.Collect(maps.Keys(c.hub.live))
	c.hub.mu.Unlock()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.cause = cause
	for _, id := range live {
		c.turns[id] = struct{}{}
	}
	begin = !c.keeps && len(c.turns) > 0
	c.keeps = c.keeps || begin
	return begin
}

// keep stores the ends of the stopped turns, and returns when none is left.
func (c *cutShortByFullDisk) keep() {
	handled := make(map[int64]bool) // the turns that stopAgents has handled
	for {
		err := c.hub.change(c.hub.ctx, c.end)
		if err != nil && !store.IsFull(err) {
			if !isEnding(err) {
				c.hub.log.Error("turns could not be ended", "err", err)
			}
			c.mu.Lock()
			c.keeps = false
			c.mu.Unlock()
			return
		}
		c.mu.Lock()
		c.keeps = len(c.turns) > 0
		more, hadRoom := c.keeps, c.hadRoom
		if !more {
			c.hadRoom = false
		}
		c.mu.Unlock()
		if !more {
			if hadRoom {
				c.DiskHasRoom()
			}
			return
		}
		if err == nil { // more turns were added meanwhile
			continue
		}
		c.stopAgents(handled) // their further output would not be stored
		if c.hub.health.AwaitRoom(c.hub.ctx) != nil {
			return
		}
	}
}

// end ends the stopped turns in as few bytes as possible.
func (c *cutShortByFullDisk) end(t store.Tx) error {
	turns := c.Turns()
	for _, id := range turns {
		turn, err := t.Turn(c.hub.ctx, id)
		if err != nil {
			return err
		}
		if !canEndOnFullDisk(turn.State) {
			continue
		}
		live := c.hub.liveTurn(id) // the commit forgets it
		if err := c.Fail(t, turn); err != nil {
			return err
		}
		t.AfterCommit(func() { c.hub.stopAgent(live) })
	}
	t.AfterCommit(func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		for _, id := range turns {
			delete(c.turns, id)
		}
	})
	return nil
}

// canEndOnFullDisk reports whether a full disk ends a turn in this state. A turn that is being
// interrupted ends by itself.
func canEndOnFullDisk(s domain.State) bool {
	return s == domain.Starting || s == domain.Running || s == domain.WaitingInput
}

// Has reports whether a full disk has stopped a turn whose end is not stored yet.
func (c *cutShortByFullDisk) Has(turn int64) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, cut := c.turns[turn]
	return cut
}

// Ends reports whether a turn is being ended here, and not by its executor.
func (c *cutShortByFullDisk) Ends(turn domain.Turn) bool {
	return canEndOnFullDisk(turn.State) && c.Has(turn.ID)
}

// message returns the error of the turns that are being ended here.
func (c *cutShortByFullDisk) message() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return messageDiskFull(c.cause)
}

// Turns returns the stopped turns whose end is not stored yet.
func (c *cutShortByFullDisk) Turns() []int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Sorted(maps.Keys(c.turns))
}

// Fail ends a turn for which the disk has no space.
func (c *cutShortByFullDisk) Fail(t store.Tx, turn domain.Turn) error {
	if err := c.noteLeftOpen(t, turn.ID); err != nil {
		return err
	}
	if err := c.hub.approvals.KeepQuestions(t, turn); err != nil {
		return err
	}
	return c.hub.transition(t, &turn, domain.Failed, outcome{
		code: domain.CodeStoreFull, reason: reasonDiskFull, leaveOpen: true, leaveApprovals: true, message: c.message(),
	})
}

// announce informs clients that a turn has failed, before that can be stored.
func (c *cutShortByFullDisk) announce(turn domain.Turn) {
	message := c.message()
	c.hub.events.Publish(turn.Event(domain.TurnStateChanged{
		From: turn.State, To: domain.Failed, Title: turn.Title, Agent: turn.Agent, Reason: reasonDiskFull,
		Error: message, ErrorCode: domain.CodeStoreFull,
	}))
	c.hub.mu.Lock()
	defer c.hub.mu.Unlock()
	c.hub.endAwaiting(turn.ID)
}

// overlay returns a function that marks a session as failed if its end is not stored yet, or nil.
func (c *cutShortByFullDisk) overlay() func(*domain.TurnInSession) {
	turns := c.Turns()
	if len(turns) == 0 {
		return nil
	}
	message := c.message()
	return func(s *domain.TurnInSession) {
		if canEndOnFullDisk(s.State) && slices.Contains(turns, s.Turn.ID) {
			s.State, s.Error, s.ErrorCode = domain.Failed, message, domain.CodeStoreFull
		}
	}
}

// stopAgents stops the agents of the turns whose ends cannot be stored yet, and informs clients,
// which would otherwise wait for free space. It handles each turn once.
func (c *cutShortByFullDisk) stopAgents(handled map[int64]bool) {
	for _, id := range c.Turns() {
		if handled[id] {
			continue
		}
		handled[id] = true
		turn, err := c.hub.store.Turn(c.hub.ctx, id)
		if err != nil {
			c.hub.log.Error("cannot find an agent that has to end", "err", err)
			continue
		}
		if canEndOnFullDisk(turn.State) {
			c.hub.stopAgent(c.hub.liveTurn(id))
			c.announce(turn)
		}
	}
}

// metaLeftOpen holds the id of the first turn that was ended without closing its open items.
const metaLeftOpen = "unsettled"

// noteLeftOpen records that a turn ends without closing its open items.
func (c *cutShortByFullDisk) noteLeftOpen(t store.Tx, turn int64) error {
	first, err := c.firstLeftOpen(t)
	if err != nil || first != 0 && first <= turn {
		return err
	}
	return t.SetMeta(metaLeftOpen, strconv.FormatInt(turn, 10))
}

// firstLeftOpen returns the first turn that may have open items, or 0.
func (c *cutShortByFullDisk) firstLeftOpen(t store.Tx) (int64, error) {
	open, err := t.Meta(c.hub.ctx, metaLeftOpen)
	if err != nil || open == "" {
		return 0, err
	}
	turn, err := strconv.ParseInt(open, 10, 64)
	if err != nil {
		turn = 1 // unknown: check all turns
	}
	return max(turn, 1), nil
}

// CloseLeftOpen closes the items that turns left open when the disk was full.
func (c *cutShortByFullDisk) CloseLeftOpen(t store.Tx) error {
	first, err := c.firstLeftOpen(t)
	if err != nil || first == 0 {
		return err
	}
	turns, err := t.TurnsFailedWith(c.hub.ctx, domain.CodeStoreFull, first)
	if err != nil {
		return err
	}
	for _, turn := range turns {
		if err := c.hub.transcript.End(t, &turn); err != nil {
			return err
		}
		if err := c.hub.approvals.SettleAnswers(t, turn, false); err != nil {
			return err
		}
	}
	return t.SetMeta(metaLeftOpen, "")
}

// DiskHasRoom starts the cleanup after a full disk, in the background. A starting hub calls it too.
func (c *cutShortByFullDisk) DiskHasRoom() {
	c.mu.Lock()
	c.hadRoom = c.keeps
	c.mu.Unlock()
	c.hub.store.Enqueue(c.CloseLeftOpen, func(err error) {
		if err != nil && !isEnding(err) {
			c.hub.log.Warn("cannot yet close what a full disk left open", "err", err)
		}
	})
}

// isEnding reports whether err means that the store is closing.
func isEnding(err error) bool {
	return errors.Is(err, domain.ErrEnding) || errors.Is(err, store.ErrClosed) || errors.Is(err, context.Canceled)
}
