package handlers

import (
	"cmp"
	"context"
	"encoding/json"
	"strings"

	"github.com/duet-rpc/duet-rpc/internal/approval"
	"github.com/duet-rpc/duet-rpc/internal/diff"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/hub"
	"github.com/duet-rpc/duet-rpc/internal/protocol"
	"github.com/duet-rpc/duet-rpc/server"
)

// registerApprovals registers the methods of the inbox of approvals (HumanLayer).
func registerApprovals(reg *server.Registry, d Domain) {
	f := sessionFamily
	handle(reg, d, f, "createApproval", createApproval,
		server.Doc("Asks the user whether a tool may run, or another question. The answer comes as the event approval_resolved, or from getApproval."))
	// Questions may be of megabytes.
	handle(reg, d, f, "fetchApprovals", fetchApprovals, server.LongRunning(), server.Doc("Lists what waits for a human's answer, the oldest first."))
	handle(reg, d, f, "getApproval", getApproval, server.LongRunning(), server.Doc("Returns an approval."))
	handle(reg, d, f, "sendDecision", sendDecision,
		server.Doc("Answers an approval. The first answer wins: for a later one, success is false and error has the decision."))
}

const (
	functionCall protocol.ApprovalType = "function_call"
	humanContact protocol.ApprovalType = "human_contact"
)

// elicitationOf returns the form or address of the question.
func elicitationOf(p protocol.CreateApprovalParams) domain.Elicitation {
	switch schema := orAbsent(p.Schema); {
	case schema != nil:
		return domain.Elicitation{Mode: domain.ElicitForm, Schema: schema}
	case p.URL != "":
		return domain.Elicitation{Mode: domain.ElicitURL, URL: p.URL}
	}
	return domain.Elicitation{}
}

func checkCreateApproval(p protocol.CreateApprovalParams) error {
	if p.SessionID == "" {
		if err := protocol.NotEmpty("run_id", p.RunID); err != nil {
			return err
		}
	}
	if p.Type == humanContact {
		return cmp.Or(protocol.NotEmpty("message", p.Message), checkApprovalOptions(p))
	}
	if elicitationOf(p).Mode != "" {
		return server.InvalidParam(server.ParamError{Param: "type", Expected: "human_contact, for a form or an address", Received: "function_call"})
	}
	return cmp.Or(protocol.NotEmpty("tool_name", p.ToolName), checkApprovalOptions(p))
}

func checkApprovalOptions(p protocol.CreateApprovalParams) error {
	if _, err := protocol.ReadOptions(p.Options); err != nil {
		return server.InvalidParam(server.ParamError{Param: "options", Expected: "an array of {option_id,name,kind}", Received: "something else"})
	}
	return nil
}

func createApproval(ctx context.Context, h *hub.Hub, p protocol.CreateApprovalParams) (protocol.CreateApprovalResult, error) {
	options, err := protocol.ReadOptions(p.Options)
	if err != nil {
		return protocol.CreateApprovalResult{}, err // checked before the call
	}
	a, err := h.Approvals().Create(ctx, approval.Spec{
		Turn: cmp.Or(p.RunID, p.SessionID), Type: string(p.Type), Tool: p.ToolName, Input: p.ToolInput, CallID: p.ToolUseID, Title: p.Message,
		Subject: p.Subject, Options: options, Channel: p.Channel, Elicitation: elicitationOf(p),
	})
	return protocol.CreateApprovalResult{ApprovalID: a.ID, CallID: a.CallID, Status: a.Status}, err
}

func fetchApprovals(ctx context.Context, h *hub.Hub, p protocol.FetchApprovalsParams) (protocol.ApprovalList, error) {
	found, err := h.Approvals().Pending(ctx, cmp.Or(p.SessionID, p.RunID))
	if err != nil {
		return protocol.ApprovalList{}, err
	}
	list := make([]*protocol.Approval, 0, len(found))
	for _, a := range found {
		s, err := h.Query().TurnOf(ctx, a.Turn)
		if err != nil {
			return protocol.ApprovalList{}, err
		}
		list = append(list, approvalOf(a, s))
	}
	return protocol.ApprovalList{Approvals: fitApprovals(list, room(ctx))}, nil
}

func getApproval(ctx context.Context, h *hub.Hub, p protocol.ApprovalIDs) (protocol.ApprovalResult, error) {
	a, err := h.Approvals().Find(ctx, p.ID())
	if err != nil {
		return protocol.ApprovalResult{}, err
	}
	s, err := h.Query().TurnOf(ctx, a.Turn)
	if err != nil {
		return protocol.ApprovalResult{}, err
	}
	one := []*protocol.Approval{approvalOf(a, s)}
	fitApprovals(one, room(ctx))
	return protocol.ApprovalResult{Approval: *one[0]}, nil
}

func checkDecision(p protocol.DecisionParams) error {
	return cmp.Or(p.IDs().Check(), sessionFamily.Error(decisionOf(p).Check()))
}

func decisionOf(p protocol.DecisionParams) approval.Decision {
	return approval.Decision{
		ID: p.IDs().ID(), Type: string(p.Type), Decision: string(p.Decision), Comment: p.Comment, Option: p.Option,
		UpdatedInput: orAbsent(p.UpdatedInput), Scope: string(p.Scope), Pattern: p.Pattern, Client: p.Client, Tell: p.Tell, Content: orAbsent(p.Content),
	}
}

func sendDecision(ctx context.Context, h *hub.Hub, p protocol.DecisionParams) (protocol.DecisionResult, error) {
	a, err := h.Approvals().Decide(ctx, decisionOf(p))
	switch hubKind(err) {
	case domain.KindApprovalNotFound:
		return protocol.DecisionResult{Error: "approval not found: " + headline(p.IDs().ID(), promptShown)}, nil
	case domain.KindAlreadyDecided:
		return protocol.DecisionResult{Error: err.Error(), Status: a.Status}, nil
	}
	r := protocol.DecisionResult{Success: err == nil, Status: a.Status}
	if a.Next != nil {
		r.ToldSessionID, r.ToldTaskID = a.Next.HumanLayerSession, domain.TaskName(a.Next.Task)
	}
	return r, err
}

// orAbsent returns nil for null: clients send null for an absent value.
func orAbsent(raw json.RawMessage) json.RawMessage {
	if string(raw) == "null" {
		return nil
	}
	return raw
}

// trimApproval cuts each input and text to most bytes.
func trimApproval(a *protocol.Approval, most int) {
	for _, input := range []*json.RawMessage{&a.ToolInput, &a.UpdatedInput} {
		if len(*input) > most {
			*input, a.Truncated = fitRaw(*input, most), true
		}
	}
	if a.FunctionCall != nil {
		a.FunctionCall.Spec.Kwargs = a.ToolInput
	}
	for _, text := range a.Texts() {
		if len(*text) > most {
			*text, a.Truncated = protocol.Cut(*text, most), true
		}
	}
	if a.Elicitation != nil && len(a.Schema) > most { // a part of a schema is another form
		whole := *a.Elicitation
		whole.Schema = nil
		a.Elicitation, a.Truncated = &whole, true
	}
}

// fitApprovals shortens approvals until all of them fit into most bytes. It leaves none out: users
// would not see its question.
func fitApprovals(list []*protocol.Approval, most int) []*protocol.Approval {
	for _, limit := range textCaps {
		if atLeast(list) <= most && fitting(list, most) == len(list) {
			return list
		}
		for _, a := range list {
			trimApproval(a, limit)
		}
	}
	return fit(list, most)
}

// atLeast returns about how long the inputs and diffs of approvals are as JSON, in bytes. It is much
// cheaper than encoding them to see that they do not fit.
func atLeast(list []*protocol.Approval) (size int) {
	for _, a := range list {
		size += len(a.ToolInput) + len(a.UpdatedInput) + len(a.Diff)
		if a.FunctionCall != nil {
			size += len(a.FunctionCall.Spec.Kwargs)
		}
	}
	return size
}

// approvalOf converts an approval of the session s.
func approvalOf(a domain.Approval, s domain.TurnInSession) *protocol.Approval {
	ambiguity, title := approval.Presented(a)
	answers := a.Answers()
	r := &protocol.Approval{
		ID: a.ID, ApprovalID: a.ID, CallID: cmp.Or(a.CallID, a.ID), RunID: s.HumanLayerRun, SessionID: s.HumanLayerSession, ThreadID: s.Session.UUID, Agent: s.Agent,
		Status: a.Status, Stale: a.Stale, Reopens: a.Reopens, Reopened: a.Reopened,
		ReopenedAs: a.ReopenedAs, TakenAt: timeOrNil(a.Taken), CreatedAt: a.Created.UTC(), Deadline: timeOrNil(a.Deadline),
		ToolName: a.Tool, ToolInput: orEmptyObject(a.Input), Editable: a.InputEditable(), ToolUseID: a.ToolUseID(), ToolKind: a.ToolKind,
		Ambiguity: ambiguity, Title: title, Subject: a.Subject, Options: a.Options, OptionsOnly: answers.OptionsOnly, Declinable: answers.Declinable, Paths: a.Paths, Diff: approvalDiff(s.Session.CWD, a.Diffs), Channel: a.Channel,
		Plan: a.Plan, Details: a.Details, Rules: protocol.RulePreviewsOf(approval.RulePreview(a, s.Session.CWD)), TakesComment: a.TakesComment(), Explanation: a.Explanation,
		RespondedAt: timeOrNil(a.Decided), DecidedBy: a.DecidedBy, Comment: a.Comment, Response: a.Response, Option: a.Option,
		UpdatedInput: a.UpdatedInput, Type: protocol.ApprovalType(a.Type), Elicitation: protocol.ElicitationOf(a.Elicitation), Content: a.Content,
	}
	if s.Task > 0 {
		r.TaskID = domain.TaskName(s.Task)
	}
	if r.Type == humanContact {
		r.HumanContact = &protocol.HumanContactRequest{
			RunID: r.RunID, CallID: r.CallID,
			Spec:   protocol.HumanContactSpec{Msg: a.Title, Subject: a.Subject, Channel: a.Channel, ResponseOptions: responseOptions(a.Options)},
			Status: protocol.HumanContactStatus{RequestedAt: r.CreatedAt, RespondedAt: r.RespondedAt, Response: a.Response, ResponseOptionName: a.Option},
		}
		return r
	}
	r.Type = functionCall
	r.FunctionCall = &protocol.FunctionCallRequest{
		RunID: r.RunID, CallID: r.CallID,
		Spec:   protocol.FunctionCallSpec{Fn: a.Tool, Kwargs: r.ToolInput, Channel: a.Channel},
		Status: protocol.FunctionCallStatus{RequestedAt: r.CreatedAt, RespondedAt: r.RespondedAt, Approved: approvedOrNil(a.Status), Comment: a.Comment},
	}
	return r
}

// approvedOrNil reports whether an approval is approved. It returns nil while the approval is pending.
func approvedOrNil(status string) *bool {
	if status == "pending" {
		return nil
	}
	yes := status == "approved"
	return &yes
}

func orEmptyObject(raw json.RawMessage) json.RawMessage {
	if len(raw) == 0 {
		return json.RawMessage("{}")
	}
	return raw
}

// responseOptions converts an agent's options to those of HumanLayer.
func responseOptions(options []domain.Option) []protocol.ResponseOption {
	list := make([]protocol.ResponseOption, 0, len(options))
	for _, o := range options {
		list = append(list, protocol.ResponseOption{Name: cmp.Or(o.ID, o.Name), Title: o.Name})
	}
	return list
}

// approvalDiff returns the changes that a tool would make as a unified diff.
func approvalDiff(cwd string, diffs []domain.Diff) string {
	var all strings.Builder
	for _, d := range diffs {
		all.WriteString(diff.Part(cwd, d.Path, d.OldText, &d.NewText, d.Line))
	}
	return all.String()
}

// registerRules registers the methods for rules that decisions with a scope created.
func registerRules(reg *server.Registry, d Domain) {
	handle(reg, d, sessionFamily, "getRules", getRules,
		server.Doc("Lists the rules that sendDecision has made with a scope, the oldest first."))
	handle(reg, d, sessionFamily, "deleteRule", deleteRule,
		server.Doc("Deletes a rule that sendDecision has made. Later calls need approval again."))
}

func getRules(ctx context.Context, h *hub.Hub, _ none) (protocol.RuleList, error) {
	found, err := h.Approvals().Rules(ctx)
	if err != nil {
		return protocol.RuleList{}, err
	}
	list := make([]*protocol.Rule, 0, len(found))
	for _, r := range found {
		one := &protocol.Rule{
			RuleID: r.ID, Effect: r.Effect, ToolName: r.Tool, Command: r.Command, Pattern: r.Pattern, Path: r.Path, SameInput: r.SameInput, Scope: r.Scope(),
			ThreadID: r.Session.UUID, Title: r.Session.Title, CreatedAt: r.Created.UTC(),
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
