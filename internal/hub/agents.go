package hub

import (
	"errors"
	"fmt"
	"path/filepath"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/config"
	"github.com/duet-rpc/duet-rpc/internal/domain"
)

// agent finds an agent, with an error that says what to do.
func (h *Hub) agent(name string) (config.Agent, error) { return AgentIn(h.opts.Agents, name) }

// AgentIn finds an agent of a configuration. Errors are of
// [domain.KindUnknownAgent], KindNotTrusted or KindExecutor, and say what to do.
func AgentIn(agents Agents, name string) (config.Agent, error) {
	agent, err := agents.Resolve(name)
	var unknown *config.UnknownAgentError
	var untrusted *config.NotTrustedError
	switch {
	case errors.As(err, &unknown):
		return agent, &domain.Error{
			Kind: domain.KindUnknownAgent, Param: "agent", Expected: "the name of an agent", Received: fmt.Sprintf("%q", name), Accepted: unknown.Known,
			Message: err.Error(), Err: err,
		}
	case errors.As(err, &untrusted):
		return agent, &domain.Error{Kind: domain.KindNotTrusted, Message: err.Error(), Err: err}
	case err != nil:
		return agent, &domain.Error{Kind: domain.KindExecutor, Message: err.Error(), Err: err}
	}
	return agent, nil
}

// agentFor finds an agent for somebody who may be restricted.
func (h *Hub) agentFor(restricted bool, name string) (config.Agent, error) {
	if !restricted || h.opts.Restricted == nil {
		return h.agent(name)
	}
	c, err := h.opts.Restricted()
	if err != nil {
		return config.Agent{}, &domain.Error{Kind: domain.KindExecutor, Message: "the configuration cannot be read: " + err.Error(), Err: err}
	}
	agent, err := AgentIn(c, name)
	var untrusted *config.NotTrustedError
	if errors.As(err, &untrusted) {
		return agent, &domain.Error{Kind: domain.KindNotTrusted, Err: err, Message: fmt.Sprintf(
			"the agent %q is defined by this project's %s, and this editor does not trust the workspace (workspaceTrusted is false): trust it in the editor, or take another agent",
			untrusted.Agent, filepath.Base(untrusted.File))}
	}
	return agent, err
}

// leaseFor is what is asked of the executors for an agent of a thread.
func leaseFor(thread string, agent config.Agent) catalog.LeaseRequest {
	return catalog.LeaseRequest{Thread: thread, Agent: agent.Name, Driver: agent.Driver, Command: agent.Command}
}

// launchOf says to an executor of ours how an agent is started; one that
// somebody else wrote knows it itself.
func (h *Hub) launchOf(a config.Agent) *catalog.AgentLaunch {
	if a.Driver == "executor" {
		return nil
	}
	return &catalog.AgentLaunch{
		Name: a.Name, Driver: a.Driver, Command: a.StartCommand(), Prompt: a.Prompt, History: a.History, Files: a.Files, StartTimeoutMS: a.StartTimeout.Milliseconds(), Env: a.Variables(h.opts.Getenv), Keys: a.Keys, Root: h.opts.Root,
		StateDir: filepath.Dir(h.opts.Database),
	}
}
