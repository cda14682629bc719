package handlers

import (
	"context"
	"strconv"
	"time"

	"github.com/duet-rpc/duet-rpc/internal/hub"
	"github.com/duet-rpc/duet-rpc/server"
)

// registerRules registers a look at what sendDecision has settled with a scope.
func registerRules(reg *server.Registry, d Domain) {
	handle(reg, d, sessionFamily, "getRules", getRules,
		server.Doc("Lists what was decided for good, by sendDecision with a scope, the oldest first."))
	handle(reg, d, sessionFamily, "deleteRule", deleteRule,
		server.Doc("Takes back what was decided for good: from now on it is asked again."))
}

type ruleList struct {
	Rules []*rule `json:"rules"`
}

// A rule is a decision that holds for all questions like one.
type rule struct {
	RuleID    int64     `json:"rule_id"`
	Effect    string    `json:"effect" doc:"allow or deny."`
	ToolName  string    `json:"tool_name"`
	Command   string    `json:"command,omitempty" doc:"Only for this command; absent: for any input."`
	Pattern   bool      `json:"pattern,omitempty" doc:"The command is a pattern, as in the configuration."`
	Path      string    `json:"path,omitempty" doc:"Only for these files: a pattern, in which * stands for no slash."`
	SameInput bool      `json:"same_input,omitempty" doc:"Only for the very input that was asked about."`
	Scope     string    `json:"scope" doc:"session or project."`
	ThreadID  string    `json:"thread_id,omitempty" doc:"The conversation, if the scope is session."`
	Title     string    `json:"title,omitempty" doc:"Of that conversation."`
	CreatedAt time.Time `json:"created_at"`
}

func (r *rule) texts() []*string { return []*string{&r.Command, &r.Path, &r.Title} }

func getRules(ctx context.Context, h *hub.Hub, _ none) (ruleList, error) {
	found, err := h.Approvals().Rules(ctx)
	if err != nil {
		return ruleList{}, err
	}
	list := make([]*rule, 0, len(found))
	for _, r := range found {
		one := &rule{
			RuleID: r.ID, Effect: r.Effect, ToolName: r.Tool, Command: r.Command, Pattern: r.Pattern, Path: r.Path, SameInput: r.SameInput, Scope: "project",
			CreatedAt: r.Created.UTC(),
		}
		if !r.InProject {
			one.Scope, one.ThreadID, one.Title = "session", r.Thread.UUID, r.Thread.Title
		}
		list = append(list, one)
	}
	return ruleList{fit(list, room(ctx))}, nil
}

type ruleID struct {
	RuleID int64 `json:"rule_id" doc:"The rule, as getRules lists it."`
}

func (p ruleID) check() error {
	if p.RuleID > 0 {
		return nil
	}
	return server.InvalidParam(server.ParamError{Param: "rule_id", Expected: "the id of a rule, as getRules lists it", Received: strconv.FormatInt(p.RuleID, 10)})
}

type deletedRule struct {
	Success bool `json:"success" doc:"true"`
}

func deleteRule(ctx context.Context, h *hub.Hub, p ruleID) (deletedRule, error) {
	if err := h.Approvals().ForgetRule(ctx, p.RuleID); err != nil {
		return deletedRule{}, err
	}
	return deletedRule{true}, nil
}
