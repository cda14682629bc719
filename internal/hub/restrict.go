package hub

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/restricted"

	"github.com/duet-rpc/duet-rpc/internal/config"
)

// agentFor finds an agent for somebody who may be restricted.
func (h *Hub) agentFor(restricted bool, name string) (config.Agent, error) {
	if !restricted || h.opts.Restricted == nil {
		return h.agent(name)
	}
	c, err := h.opts.Restricted()
	if err != nil {
		return config.Agent{}, &domain.Error{Kind: domain.KindExecutor, Message: "the configuration cannot be read: " + err.Error(), Err: err}
	}
	agent, err := agentIn(c, name)
	var untrusted *config.NotTrustedError
	if errors.As(err, &untrusted) {
		return agent, &domain.Error{Kind: domain.KindNotTrusted, Err: err, Message: fmt.Sprintf(
			"the agent %q is defined by this project's %s, and this editor does not trust the workspace (workspaceTrusted is false): trust it in the editor, or take another agent",
			untrusted.Agent, filepath.Base(untrusted.File))}
	}
	return agent, err
}

// keysOf are the keys that the configuration has for a run.
func (h *Hub) keysOf(run domain.Run) map[string]config.Key {
	if !restricted.Marked(run) || h.opts.Restricted == nil {
		return h.configuredKeys()
	}
	c, err := h.opts.Restricted()
	if err != nil {
		h.log.Warn("the configuration cannot be read", "err", err)
		return nil
	}
	return c.Keys
}

// withMember is an object with one member set.
func withMember(object json.RawMessage, name string, value json.RawMessage) json.RawMessage {
	members := map[string]json.RawMessage{}
	_ = json.Unmarshal(object, &members) // absent, or ours
	members[name] = value
	return encode(members)
}
