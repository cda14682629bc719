package hub

import (
	"context"
	"fmt"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/clientenv"
	"github.com/duet-rpc/duet-rpc/internal/config"
	"github.com/duet-rpc/duet-rpc/internal/domain"
)

// findSandbox returns the level of the sandbox in which an agent runs that a session's settings and its
// configuration require, and the path of bwrap; "" if neither requires one. Errors are of
// [domain.KindSandbox]: nothing may run then.
func (h *Hub) findSandbox(ctx context.Context, of domain.Settings, agent config.Agent) (level, program string, err error) {
	level = domain.StrongerSandbox(of.Sandbox, agent.Sandbox)
	switch {
	case level == "":
		return "", "", nil
	case agent.Driver == config.DriverExecutor:
		return "", "", &domain.Error{Kind: domain.KindSandbox, Message: fmt.Sprintf(
			"%s cannot run in a sandbox: it is a third-party executor, which starts its agents itself; take another agent", agent.Name)}
	}
	program, err = h.sandboxes.Find(ctx, level, append([]string{h.opts.Root, h.opts.WorktreesDir}, agent.SandboxWrite...)...)
	return level, program, err
}

// Sandboxes returns the levels of a sandbox that a session of an agent can ask for: those that work here, and
// that the agent's configuration does not require anyway.
func (h *Hub) Sandboxes(ctx context.Context, name string) (levels []string) {
	agent, err := h.configured.AgentFor(clientenv.IsRestricted(ctx), name)
	if err != nil {
		return nil
	}
	for _, level := range domain.SandboxLevels() {
		if domain.StrongerSandbox(level, agent.Sandbox) == agent.Sandbox {
			continue
		}
		if _, _, err := h.findSandbox(ctx, domain.Settings{Sandbox: level}, agent); err == nil {
			levels = append(levels, level)
		}
	}
	return levels
}

// sandboxOf returns the sandbox in which an agent runs for a client; nil for none. Errors are those of
// findSandbox.
func (h *Hub) sandboxOf(ctx context.Context, of domain.Settings, agent config.Agent, client clientenv.Environment) (*catalog.Sandbox, error) {
	level, program, err := h.findSandbox(ctx, of, agent)
	if err != nil || level == "" {
		return nil, err
	}
	box := &catalog.Sandbox{Level: level, Program: program, Write: agent.SandboxWrites(agent.Variables(client, h.opts.Getenv))}
	if h.opts.Private != nil {
		box.Hide = h.opts.Private()
	}
	return box, nil
}

// checkSandbox returns the error of findSandbox for a session that a turn continues, before anything is
// stored. It leaves other errors to the caller.
func (h *Hub) checkSandbox(ctx context.Context, spec ContinueSpec) error {
	s, err := h.query.Turn(ctx, spec.From)
	if err != nil {
		return nil
	}
	settings, name := s.Session.Settings, s.Session.Agent
	if spec.Settings != nil {
		spec.Settings(&settings)
	}
	if spec.Choice.Agent != "" {
		name = spec.Choice.Agent
	}
	agent, err := h.configured.AgentFor(clientenv.IsRestricted(ctx), name)
	if err != nil {
		return nil
	}
	_, _, err = h.findSandbox(ctx, settings, agent)
	return err
}
