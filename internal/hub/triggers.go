package hub

import (
	"context"
	"encoding/json"

	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/store"
	"github.com/duet-rpc/duet-rpc/internal/trigger"
)

// Triggers do what the configuration wants when something happens.
func (h *Hub) Triggers() *trigger.Engine { return h.triggers }

// newTriggers makes the engine of the triggers. The store is open.
func (h *Hub) newTriggers() *trigger.Engine {
	definitions := h.opts.Triggers
	if definitions == nil {
		definitions = func() (trigger.Definitions, error) { return trigger.Definitions{}, nil }
	}
	opts := trigger.Options{
		Store: h.store, Runs: forTriggers{h}, Questions: h.approvals, Log: h.events, Definitions: definitions, Root: h.opts.Root, StateDir: h.opts.StateDir, Logger: h.log,
	}
	if h.opts.Changes != nil {
		opts.Changes = h.opts.Changes
	}
	return trigger.New(h.ctx, opts)
}

// forTriggers is the life of runs as triggers need it.
type forTriggers struct{ hub *Hub }

// Write is as of [trigger.Runs].
func (f forTriggers) Write(ctx context.Context, change func(store.Tx) error) error {
	return f.hub.write(ctx, change)
}

// Begin is as of [trigger.Runs].
func (f forTriggers) Begin(t store.Tx, b trigger.Begin) (domain.Run, error) {
	h := f.hub
	agent, err := h.configured.AgentFor(false, b.Agent)
	if err != nil {
		return domain.Run{}, err
	}
	metadata, err := json.Marshal(b.Metadata)
	if err != nil {
		return domain.Run{}, err
	}
	spec := LaunchSpec{
		Prompt: b.Prompt, Title: b.Title, Agent: agent.Name, CWD: h.opts.Root, Source: domain.SourceTrigger, Priority: b.Priority, Draft: b.Draft, Metadata: metadata,
	}
	run := newRun(spec, agent.Name)
	thread, err := h.newThread(t, spec, agent.Name)
	if err != nil {
		return run, err
	}
	return run, h.add(t, &run, thread, b.Draft)
}

// Submit is as of [trigger.Runs].
func (f forTriggers) Submit(t store.Tx, run *domain.Run) error {
	return f.hub.launchDraft(f.hub.ctx, t, run, ContinueSpec{})
}

// Discard is as of [trigger.Runs].
func (f forTriggers) Discard(t store.Tx, run *domain.Run) error {
	return f.hub.transition(t, run, domain.Discarded, outcome{reason: "not_wanted"})
}
