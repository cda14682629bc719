package handlers

import (
	"context"

	"github.com/duet-rpc/duet-rpc/internal/hub"
	"github.com/duet-rpc/duet-rpc/internal/protocol"
	"github.com/duet-rpc/duet-rpc/server"
)

// registerRules registers a look at what sendDecision has settled with a scope.
func registerRules(reg *server.Registry, d Domain) {
	handle(reg, d, sessionFamily, "getRules", getRules,
		server.Doc("Lists what was decided for good, by sendDecision with a scope, the oldest first."))
	handle(reg, d, sessionFamily, "deleteRule", deleteRule,
		server.Doc("Takes back what was decided for good: from now on it is asked again."))
}

func getRules(ctx context.Context, h *hub.Hub, _ none) (protocol.RuleList, error) {
	found, err := h.Approvals().Rules(ctx)
	if err != nil {
		return protocol.RuleList{}, err
	}
	list := make([]*protocol.Rule, 0, len(found))
	for _, r := range found {
		one := &protocol.Rule{
			RuleID: r.ID, Effect: r.Effect, ToolName: r.Tool, Command: r.Command, Pattern: r.Pattern, Path: r.Path, SameInput: r.SameInput, Scope: "project",
			CreatedAt: r.Created.UTC(),
		}
		if !r.InProject {
			one.Scope, one.ThreadID, one.Title = "session", r.Thread.UUID, r.Thread.Title
		}
		list = append(list, one)
	}
	return protocol.RuleList{Rules: fit(list, room(ctx))}, nil
}

func deleteRule(ctx context.Context, h *hub.Hub, p protocol.DeleteRuleParams) (protocol.DeleteRuleResult, error) {
	if err := h.Approvals().ForgetRule(ctx, p.RuleID); err != nil {
		return protocol.DeleteRuleResult{}, err
	}
	return protocol.DeleteRuleResult{Success: true}, nil
}
