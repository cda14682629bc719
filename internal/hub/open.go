package hub

import (
	"context"
	"log/slog"
	"time"

	"github.com/duet-rpc/duet-rpc/internal/config"
	"github.com/duet-rpc/duet-rpc/internal/credential"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/query"
	"github.com/duet-rpc/duet-rpc/internal/store"
	"github.com/duet-rpc/duet-rpc/internal/transcript"
)

// This file opens a hub and closes it.

// Open opens the database, recovers from a dead process, and starts the queued turns. Its error is
// that of [Project.OpenStore] or of the file system.
func Open(ctx context.Context, opts Options) (*Hub, error) {
	h, err := openOnce(ctx, opts)
	var full error
	if store.IsFull(err) && store.FreeReserve(opts.Database) == nil { // which is large enough for recovery
		full = err
		h, err = openOnce(ctx, opts)
	}
	if err == nil {
		h.health.Watch(full)
	}
	return h, err
}

func openOnce(ctx context.Context, opts Options) (*Hub, error) {
	h := newHub(ctx, opts)
	if err := h.openStore(ctx); err != nil {
		return nil, err
	}
	h.makeOwners()
	h.active.Go(h.executeStarted)
	if err := h.recover(ctx); err != nil {
		h.cancel()
		h.store.Close()
		if store.IsDamaged(err) {
			err = store.Explain(err)
		}
		return nil, err
	}
	h.goOn(ctx)
	return h, nil
}

// newHub returns a hub with the owners that need no store.
func newHub(ctx context.Context, opts Options) *Hub {
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	h := &Hub{
		opts: opts, log: opts.Logger, started: time.Now(), clocks: newTurnClocks(),
		live: make(map[int64]*liveTurn), awaiting: make(map[int64][]chan struct{}),
		tokens: credential.NewTokens(), toExecute: newStartQueue(), environments: newTurnEnvironments(),
	}
	h.ctx, h.cancel = context.WithCancel(context.WithoutCancel(ctx))
	h.configured = &config.Configuration{
		Agents: opts.Configuration, Current: opts.Configuration.Current, Logger: h.log,
	}
	h.transcript = transcript.New(h.ctx,
		func(turn int64) (domain.TurnInSession, bool) { return h.query.Known(turn) })
	h.cutShort = &cutShortByFullDisk{hub: h, turns: make(map[int64]struct{})}
	h.health = store.NewMonitor(store.MonitorOptions{
		Database: opts.Database, Removed: opts.Removed, Lost: opts.Lost, Logger: h.log,
		Full: h.cutShort.DiskIsFull, Room: h.cutShort.DiskHasRoom,
	})
	h.events = h.newEvents(h.ctx)
	return h
}

// openStore opens the store, and the queries of it.
func (h *Hub) openStore(ctx context.Context) (err error) {
	h.store, err = h.opts.Project.OpenStore(ctx, store.Options{
		Now: h.opts.Now, Valid: h.opts.Project.Valid, Damaged: h.health.Damaged,
		Committed: h.committed, RolledBack: h.transcript.RolledBack,
	})
	if err != nil {
		return err
	}
	h.health.Opened(h.store)
	h.query = query.New(h.ctx, h.store)
	h.query.Unstored = h.cutShort.overlay
	return nil
}

// makeOwners makes the owners of the state that is stored. An owner comes after those that it needs.
func (h *Hub) makeOwners() {
	h.keys = h.newKeys()
	h.approvals = h.newInbox()
	h.settings = h.newSettings()
	h.budget = &budgetGuard{hub: h, accounts: make(map[int64]*account)}
	h.intake = h.newIntake()
	h.servers = h.newServers(h.ctx)
	h.mcp = h.newMCP(h.ctx)
	h.calls = &ExecutorCalls{h}
	h.terminals = h.newTerminals(h.ctx)
	h.commands = h.newCommands(h.ctx)
	h.builds = h.newBuilds()
	h.gates = h.newGates()
	h.preview = h.newPreview()
	h.review = h.newReview()
	h.checkpoints = newCheckpoints(h)
	h.executors = h.opts.Executors(daemon{ownTurns{h}, h.calls, h.intake, h.keys, h.terminals, h.commands})
	h.configs = h.newConfigWatch()
	h.triggers = h.newTriggers()
}

// goOn continues the work that a dead process left, after recovery, and starts the triggers.
func (h *Hub) goOn(ctx context.Context) {
	h.tidyWorktrees()
	if err := h.gates.Resume(ctx); err != nil {
		h.log.Warn("gates that were checked when a process died are not checked again", "err", err)
	}
	h.cutShort.DiskHasRoom()
	h.triggers.Start()
}

// Close interrupts the active turns, so that they can be resumed, and closes the database. Open
// questions stay open. It returns within about a second.
func (h *Hub) Close() error {
	h.mu.Lock()
	if h.closing {
		h.mu.Unlock()
		return nil
	}
	h.closing = true
	if h.calm != nil {
		h.calm.Stop()
	}
	h.mu.Unlock()

	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = h.triggers.Close(ctx)
	_ = h.health.Close(ctx)
	err := h.change(ctx, h.shutDown)
	if err != nil {
		h.log.Warn("turns could not be marked as interrupted", "err", err)
	}
	h.cancel()
	h.keys.Close()
	h.intake.Close()
	_ = h.gates.Close(ctx)
	_ = h.terminals.Close(ctx)
	_ = h.mcp.Close(ctx)
	_ = h.servers.Close(ctx)
	_ = h.events.Close(ctx)
	_ = h.configs.Close(ctx)
	_ = h.settings.Close(ctx)
	_ = h.cutShort.Close(ctx)
	if h.active.Close(ctx) != nil {
		h.log.Warn("turns did not end in time")
	}
	return h.store.Close()
}

// Abandon interrupts the active turns as Close does and starts nothing more. Clients learn of it
// before their connections end.
func (h *Hub) Abandon(ctx context.Context) error {
	h.mu.Lock()
	h.draining = true
	h.mu.Unlock()
	return h.write(ctx, h.shutDown)
}

func (h *Hub) shutDown(t store.Tx) error {
	if err := h.abandon(t, "SHUTDOWN", "duet-rpc was ended while this ran; continue it to go on where it was"); err != nil {
		return err
	}
	return h.intake.CutBackground(t)
}
