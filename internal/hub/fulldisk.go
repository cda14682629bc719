package hub

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

// forFullDisk is the life of runs as a full disk needs it, as of [fullDiskRuns].
type forFullDisk struct{ hub *Hub }

func (f forFullDisk) Change(ctx context.Context, change func(store.Tx) error) error {
	return f.hub.change(ctx, change)
}

func (f forFullDisk) Live() []int64 {
	f.hub.mu.Lock()
	defer f.hub.mu.Unlock()
	return slices.Collect(maps.Keys(f.hub.live))
}

func (f forFullDisk) StopperOf(run int64) func() {
	live := f.hub.liveRun(run)
	return func() { f.hub.stopAgent(live) }
}

const (
	reasonDiskFull  = "disk_full"
	messageDiskFull = "the disk is full, so this could not go on; free some space and continue it"
)

func (f forFullDisk) FailFull(t store.Tx, run domain.Run) error {
	return f.hub.transition(t, &run, domain.Failed, outcome{
		code: domain.CodeStoreFull, reason: reasonDiskFull, leaveOpen: true, leaveApprovals: true, message: messageDiskFull,
	})
}

func (f forFullDisk) AnnounceFull(run domain.Run) {
	e := run.Event(domain.RunStateChanged{
		From: run.State, To: domain.Failed, Title: run.Title, Agent: run.Agent, Reason: reasonDiskFull, Error: messageDiskFull, ErrorCode: domain.CodeStoreFull,
	})
	f.hub.events.Publish(e)
	f.hub.mu.Lock()
	defer f.hub.mu.Unlock()
	f.hub.endAwaiting(run.ID)
}

// unstored gives a session the state failed where a full disk has ended it, and that is
// not stored yet.
func (f forFullDisk) unstored() (overlay func(*domain.Session)) {
	runs := f.hub.cutShort.Runs()
	if len(runs) == 0 {
		return nil
	}
	return func(s *domain.Session) {
		if canEndOnFullDisk(s.State) && slices.Contains(runs, s.Run.ID) {
			s.State, s.Error, s.ErrorCode = domain.Failed, messageDiskFull, domain.CodeStoreFull
		}
	}
}

// What follows ends runs that cannot go on since the disk is full, and closes what
// they left open when there is room again.

// fullDiskRuns is what [cutShortByFullDisk] asks of the life of runs. Its methods may be called from any
// goroutine; those with a store.Tx belong to the store's writer.
type fullDiskRuns interface {
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

// fullDiskQuestions are those of runs to people, and their answers.
type fullDiskQuestions interface {
	// KeepQuestions keeps those of a run that ends for whoever continues it.
	KeepQuestions(t store.Tx, run domain.Run) error
	// SettleAnswers says what became of the answers of a run that has ended.
	SettleAnswers(t store.Tx, run domain.Run, stopped bool) error
}

// fullDiskConversation is what is said and done in runs.
type fullDiskConversation interface {
	// End closes what is open in a run.
	End(t store.Tx, run *domain.Run) error
}

// fullDiskOptions say what CutShort stands on. All of them are required.
type fullDiskOptions struct {
	Store        store.Store
	Runs         fullDiskRuns
	Questions    fullDiskQuestions
	Conversation fullDiskConversation
	AwaitRoom    func(context.Context) error // waits until there may be room again
	Logger       *slog.Logger
}

// cutShortByFullDisk are the runs that a full disk has cut short. Its methods may be called from
// any goroutine; those with a store.Tx belong to the store's writer.
type cutShortByFullDisk struct {
	opts    fullDiskOptions
	ctx     context.Context
	keeping background.Group

	mu      sync.Mutex         // guards the fields below
	runs    map[int64]struct{} // until it is kept that they have ended
	keeps   bool               // a goroutine sees to that
	hadRoom bool               // DiskHasRoom was called meanwhile: too early for these runs
}

// newFullDisk makes an empty set. When ctx ends, nothing is written any more.
func newFullDisk(ctx context.Context, opts fullDiskOptions) *cutShortByFullDisk {
	return &cutShortByFullDisk{opts: opts, ctx: ctx, runs: make(map[int64]struct{})}
}

// Close waits until nothing is being kept any more, or ctx ends. The context of [newFullDisk]
// ends before.
func (c *cutShortByFullDisk) Close(ctx context.Context) error { return c.keeping.Close(ctx) }

// DiskIsFull is told that a change found no room. What runs at that moment
// cannot be kept any more, so it is cut short: at once with what the reserve has
// room for, else as soon as there is room. What is started later has room.
func (c *cutShortByFullDisk) DiskIsFull(cause error) {
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
func (c *cutShortByFullDisk) markAll() (begin bool) {
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
func (c *cutShortByFullDisk) keep() {
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
func (c *cutShortByFullDisk) end(t store.Tx) error {
	runs := c.Runs()
	for _, id := range runs {
		run, err := t.Run(c.ctx, id)
		if err != nil {
			return err
		}
		if !canEndOnFullDisk(run.State) {
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

// canEndOnFullDisk reports whether a full disk ends a run in a state. One that is being
// interrupted ends by itself.
func canEndOnFullDisk(s domain.State) bool {
	return s == domain.Starting || s == domain.Running || s == domain.WaitingInput
}

// Has reports whether a full disk has cut a run short, and that is not kept
// yet.
func (c *cutShortByFullDisk) Has(run int64) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, cut := c.runs[run]
	return cut
}

// Ends reports whether a run is being ended here, and not by its executor.
func (c *cutShortByFullDisk) Ends(run domain.Run) bool {
	return canEndOnFullDisk(run.State) && c.Has(run.ID)
}

// Runs are those that a full disk has cut short, which is not kept yet.
func (c *cutShortByFullDisk) Runs() []int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Sorted(maps.Keys(c.runs))
}

// Fail ends a run for which there is no room.
func (c *cutShortByFullDisk) Fail(t store.Tx, run domain.Run) error {
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
func (c *cutShortByFullDisk) stopAgents(told map[int64]bool) {
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
		if canEndOnFullDisk(run.State) {
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
func (c *cutShortByFullDisk) noteLeftOpen(t store.Tx, run int64) error {
	first, err := c.firstLeftOpen(t)
	if err != nil || first != 0 && first <= run {
		return err
	}
	return t.SetMeta(metaLeftOpen, strconv.FormatInt(run, 10))
}

// firstLeftOpen is the first run in which something may be left open, or 0.
func (c *cutShortByFullDisk) firstLeftOpen(t store.Tx) (int64, error) {
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
func (c *cutShortByFullDisk) CloseLeftOpen(t store.Tx) error {
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
func (c *cutShortByFullDisk) DiskHasRoom() {
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
