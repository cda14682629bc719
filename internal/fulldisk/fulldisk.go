// Package fulldisk ends runs that cannot go on since the disk is full, and closes what
// they left open when there is room again.
package fulldisk

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"sync"

	"github.com/duet-rpc/duet-rpc/internal/background"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/store"
)

// Runs is what [CutShort] asks of the life of runs. Its methods may be called from any
// goroutine; those with a store.Tx belong to the store's writer.
type Runs interface {
	// Change makes a change in which runs may change their state. Its error is the
	// store's own.
	Change(ctx context.Context, change func(store.Tx) error) error
	// Live are the runs that have an agent.
	Live() []int64
	// StopperOf stops the agent that a run has now, without waiting for that.
	StopperOf(run int64) (stop func())
	// FailFull makes a run failed because the disk is full, and writes as little as
	// can be.
	FailFull(t store.Tx, run domain.Run) error
	// AnnounceFull tells clients that a run has failed because the disk is full, before
	// that can be stored.
	AnnounceFull(run domain.Run)
}

// Questions are those of runs to people, and their answers.
type Questions interface {
	// KeepQuestions keeps those of a run that ends for whoever continues it.
	KeepQuestions(t store.Tx, run domain.Run) error
	// SettleAnswers says what became of the answers of a run that has ended.
	SettleAnswers(t store.Tx, run domain.Run, stopped bool) error
}

// Conversation is what is said and done in runs.
type Conversation interface {
	// End closes what is open in a run.
	End(t store.Tx, run *domain.Run) error
}

// Options say what CutShort stands on. All of them are required.
type Options struct {
	Store        store.Store
	Runs         Runs
	Questions    Questions
	Conversation Conversation
	AwaitRoom    func(context.Context) error // waits until there may be room again
	Logger       *slog.Logger
}

// CutShort are the runs that a full disk has cut short. Its methods may be called from
// any goroutine; those with a store.Tx belong to the store's writer.
type CutShort struct {
	opts    Options
	ctx     context.Context
	keeping background.Group

	mu      sync.Mutex         // guards the fields below
	runs    map[int64]struct{} // until it is kept that they have ended
	keeps   bool               // a goroutine sees to that
	hadRoom bool               // DiskHasRoom was called meanwhile: too early for these runs
}

// New makes an empty set. When ctx ends, nothing is written any more.
func New(ctx context.Context, opts Options) *CutShort {
	return &CutShort{opts: opts, ctx: ctx, runs: make(map[int64]struct{})}
}

// Close waits until nothing is being kept any more, or ctx ends. The context of [New]
// ends before.
func (c *CutShort) Close(ctx context.Context) error { return c.keeping.Close(ctx) }

// DiskIsFull is told that a change found no room. What runs at that moment
// cannot be kept any more, so it is cut short: at once with what the reserve has
// room for, else as soon as there is room. What is started later has room.
func (c *CutShort) DiskIsFull(cause error) {
	if !c.markAll() {
		return // it is being dealt with, or nothing runs
	}
	c.opts.Logger.Error("the disk is full: what runs is ended", "err", cause)
	if !c.keeping.Go(c.keep) {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.keeps = false
	}
}

// markAll marks all that runs as cut short, and reports whether somebody has
// to begin to keep that.
func (c *CutShort) markAll() (begin bool) {
	live := c.opts.Runs.Live()
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, id := range live {
		c.runs[id] = struct{}{}
	}
	begin = !c.keeps && len(c.runs) > 0
	c.keeps = c.keeps || begin
	return begin
}

// keep keeps the ends of the runs that a full disk has cut short, and
// returns when there is none any more.
func (c *CutShort) keep() {
	told := make(map[int64]bool) // the runs that stopAgents has seen to
	for {
		err := c.opts.Runs.Change(c.ctx, c.end)
		if err != nil && !store.IsFull(err) {
			if !isEnding(err) {
				c.opts.Logger.Error("runs could not be ended", "err", err)
			}
			c.mu.Lock()
			c.keeps = false
			c.mu.Unlock()
			return
		}
		c.mu.Lock()
		c.keeps = len(c.runs) > 0
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
		if err == nil { // others have come meanwhile
			continue
		}
		c.stopAgents(told) // nothing of what they do now would be kept
		if c.opts.AwaitRoom(c.ctx) != nil {
			return
		}
	}
}

// end ends the runs that are cut short, in as few bytes as can be.
func (c *CutShort) end(t store.Tx) error {
	runs := c.Runs()
	for _, id := range runs {
		run, err := t.Run(c.ctx, id)
		if err != nil {
			return err
		}
		if !CanEnd(run.State) {
			continue
		}
		stop := c.opts.Runs.StopperOf(id) // the agent is forgotten with the commit
		if err := c.Fail(t, run); err != nil {
			return err
		}
		t.AfterCommit(stop)
	}
	t.AfterCommit(func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		for _, id := range runs {
			delete(c.runs, id)
		}
	})
	return nil
}

// CanEnd reports whether a full disk ends a run in a state. One that is being
// interrupted ends by itself.
func CanEnd(s domain.State) bool {
	return s == domain.Starting || s == domain.Running || s == domain.WaitingInput
}

// Has reports whether a full disk has cut a run short, and that is not kept
// yet.
func (c *CutShort) Has(run int64) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, cut := c.runs[run]
	return cut
}

// Ends reports whether a run is being ended here, and not by its executor.
func (c *CutShort) Ends(run domain.Run) bool { return CanEnd(run.State) && c.Has(run.ID) }

// Runs are those that a full disk has cut short, which is not kept yet.
func (c *CutShort) Runs() []int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Sorted(maps.Keys(c.runs))
}

// Fail ends a run for which there is no room.
func (c *CutShort) Fail(t store.Tx, run domain.Run) error {
	if err := c.noteLeftOpen(t, run.ID); err != nil {
		return err
	}
	if err := c.opts.Questions.KeepQuestions(t, run); err != nil {
		return err
	}
	return c.opts.Runs.FailFull(t, run)
}

// stopAgents stops the agents of the runs whose ends cannot be kept yet, and tells
// clients: they would wait for the ends until there is room. It sees to each run once.
func (c *CutShort) stopAgents(told map[int64]bool) {
	for _, id := range c.Runs() {
		if told[id] {
			continue
		}
		told[id] = true
		run, err := c.opts.Store.Run(c.ctx, id)
		if err != nil {
			c.opts.Logger.Error("an agent that is to be ended could not be found", "err", err)
			continue
		}
		if CanEnd(run.State) {
			c.opts.Runs.StopperOf(id)()
			c.opts.Runs.AnnounceFull(run)
		}
	}
}

// metaLeftOpen is set while there are runs that were ended without closing
// what was open in them: to the id of the first of them. Earlier versions set it
// to 1, which is the id of the first run that there is.
const metaLeftOpen = "unsettled"

// noteLeftOpen notes that a run is ended without closing what is open in it.
func (c *CutShort) noteLeftOpen(t store.Tx, run int64) error {
	first, err := c.firstLeftOpen(t)
	if err != nil || first != 0 && first <= run {
		return err
	}
	return t.SetMeta(metaLeftOpen, strconv.FormatInt(run, 10))
}

// firstLeftOpen is the first run in which something may be left open, or 0.
func (c *CutShort) firstLeftOpen(t store.Tx) (int64, error) {
	open, err := t.Meta(c.ctx, metaLeftOpen)
	if err != nil || open == "" {
		return 0, err
	}
	run, err := strconv.ParseInt(open, 10, 64)
	if err != nil {
		run = 1 // nobody knows: all are looked at
	}
	return max(run, 1), nil
}

// CloseLeftOpen closes what was left open in runs when the disk was full.
func (c *CutShort) CloseLeftOpen(t store.Tx) error {
	first, err := c.firstLeftOpen(t)
	if err != nil || first == 0 {
		return err
	}
	runs, err := t.RunsFailedWith(c.ctx, domain.CodeStoreFull, first)
	if err != nil {
		return err
	}
	for _, run := range runs {
		if err := c.opts.Conversation.End(t, &run); err != nil {
			return err
		}
		if err := c.opts.Questions.SettleAnswers(t, run, false); err != nil {
			return err
		}
	}
	return t.SetMeta(metaLeftOpen, "")
}

// DiskHasRoom is told that there is room again after the disk was full, and so is
// a hub that begins: nobody waits for what it does.
func (c *CutShort) DiskHasRoom() {
	c.mu.Lock()
	c.hadRoom = c.keeps
	c.mu.Unlock()
	c.opts.Store.Enqueue(c.CloseLeftOpen, func(err error) {
		if err != nil && !isEnding(err) {
			c.opts.Logger.Warn("what a full disk left open could not be closed yet", "err", err)
		}
	})
}

// isEnding reports whether err means that the store is being closed.
func isEnding(err error) bool {
	return errors.Is(err, domain.ErrEnding) || errors.Is(err, store.ErrClosed) || errors.Is(err, context.Canceled)
}
