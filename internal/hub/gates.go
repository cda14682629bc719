package hub

import (
	"context"

	"github.com/duet-rpc/duet-rpc/internal/clientenv"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/gate"
	"github.com/duet-rpc/duet-rpc/internal/store"
)

// Gates keep agents at work until commands pass.
func (h *Hub) Gates() *gate.Engine { return h.gates }

func (h *Hub) newGates() *gate.Engine {
	configured := h.opts.Gates
	if configured == nil {
		configured = func() (gate.Configured, error) { return gate.Configured{}, nil }
	}
	return gate.New(h.ctx, gate.Options{
		Store: h.store, Runs: forGates{h}, Configured: configured, Run: h.commands.Run, AwaitRoom: h.health.AwaitRoom, Root: h.opts.Root, Getenv: h.opts.Getenv, Logger: h.log,
	})
}

// forGates is the life of runs as gates need it.
type forGates struct{ hub *Hub }

// Write is as of [gate.Runs].
func (f forGates) Write(ctx context.Context, change func(store.Tx) error) error {
	return f.hub.write(ctx, change)
}

// Next is as of [gate.Runs].
func (f forGates) Next(t store.Tx, run domain.Run, prompt string) (domain.Run, error) {
	h := f.hub
	thread, err := t.Thread(h.ctx, run.Thread)
	if err != nil {
		return domain.Run{}, err
	}
	if _, err := h.configured.AgentFor(run.Restricted, thread.Agent); err != nil {
		return domain.Run{}, err
	}
	last, err := t.LastRun(h.ctx, run.Thread)
	if err != nil {
		return domain.Run{}, err
	}
	next := following(thread, run, prompt, thread.Agent)
	next.Source, next.Parent, next.Priority, next.Title = domain.SourceGate, last.ID, run.Priority, run.Title
	err = h.add(t, &next, thread, false)
	if err == nil {
		h.environments.keep(t, next.ID, h.environments.of(run.ID))
	}
	return next, err
}

// MayStart is as of [gate.Runs].
func (f forGates) MayStart(store.Tx) { f.hub.mayStart = true }

// Say is as of [gate.Runs].
func (f forGates) Say(t store.Tx, run domain.Run, text string) error {
	return f.hub.conversation.GatesChecked(t, run, text)
}

// Environment is as of [gate.Runs].
func (f forGates) Environment(run int64) clientenv.Environment { return f.hub.environments.of(run) }

// Resting is as of [gate.Runs].
func (f forGates) Resting() bool { return f.hub.isClosing() }

// Rested is as of [gate.Runs].
func (f forGates) Rested() {
	f.hub.environments.tidy(f.hub.gates.Checks)
	f.hub.mu.Lock()
	defer f.hub.mu.Unlock()
	f.hub.noteRest()
	f.hub.calmDown()
}
