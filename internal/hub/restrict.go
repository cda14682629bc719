package hub

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/duet-rpc/duet-rpc/internal/domain"

	"github.com/duet-rpc/duet-rpc/internal/config"
)

type restrictedKey struct{}

// Restricted is a context of somebody who does not trust the workspace, such as
// an editor in a restricted mode: for what is launched with it nothing that the
// project's file runs is run, even where the user has trusted that file
// elsewhere.
func Restricted(ctx context.Context) context.Context {
	return context.WithValue(ctx, restrictedKey{}, true)
}

func isRestricted(ctx context.Context) bool { return ctx.Value(restrictedKey{}) != nil }

// trustMember is the member of a run's metadata that is false where the run was
// launched with a restricted context: it may wait, and outlive who launched it.
const trustMember = "workspace_trusted"

// restrict marks a run that is launched with ctx, where that is restricted.
func restrict(ctx context.Context, run *domain.Run) {
	if isRestricted(ctx) {
		run.Metadata = withMember(run.Metadata, trustMember, json.RawMessage("false"))
	}
}

func wasRestricted(run domain.Run) bool {
	var m map[string]json.RawMessage
	return json.Unmarshal(run.Metadata, &m) == nil && string(m[trustMember]) == "false"
}

// resolveFor finds an agent for somebody who may be restricted.
func (h *Hub) resolveFor(restricted bool, name string) (config.Agent, error) {
	if !restricted || h.opts.Restricted == nil {
		return h.resolve(name)
	}
	c, err := h.opts.Restricted()
	if err != nil {
		return config.Agent{}, &domain.Error{Kind: domain.KindExecutor, Message: "the configuration cannot be read: " + err.Error(), Err: err}
	}
	agent, err := resolveIn(c, name)
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
	if !wasRestricted(run) || h.opts.Restricted == nil {
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
