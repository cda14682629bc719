package handlers

import (
	"cmp"
	"context"
	"encoding/json"
	"strings"

	"github.com/duet-rpc/duet-rpc/internal/approval"
	"github.com/duet-rpc/duet-rpc/internal/dialect/humanlayer"
	"github.com/duet-rpc/duet-rpc/internal/diff"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/hub"
	"github.com/duet-rpc/duet-rpc/internal/protocol"
	"github.com/duet-rpc/duet-rpc/server"
)

// registerApprovals registers the methods of the inbox of approvals (HumanLayer).
func registerApprovals(reg *server.Registry, d Domain) {
	handle(reg, d, humanLayerFamily, "createApproval", createApproval,
		server.Doc("Asks the user whether a tool may run, or another question. The answer comes as the event approval_resolved, or from getApproval."))
	// Questions may be of megabytes.
	handle(reg, d, humanLayerFamily, "fetchApprovals", fetchApprovals, server.LongRunning(), server.Doc("Lists what waits for a human's answer, the oldest first."))
	handle(reg, d, humanLayerFamily, "getApproval", getApproval, server.LongRunning(), server.Doc("Returns an approval."))
	handle(reg, d, humanLayerFamily, "sendDecision", sendDecision,
		server.Doc("Answers an approval. The first answer wins: for a later one, success is false and error has the decision."))

	f := nativeFamily
	handle(reg, d, f, "approval.list", listApprovals, server.LongRunning(), server.Doc("Lists what waits for a person's answer, the oldest first."))
	handle(reg, d, f, "approval.get", oneApproval, server.LongRunning(), server.Doc("Returns an approval."))
	handle(reg, d, f, "approval.decide", decideApproval,
		server.Doc("Answers an approval. The first answer wins: for a later one, success is false and error has the decision."))
}

const (
	functionCall = protocol.FunctionCall
	humanContact = protocol.HumanContact
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

func fetchApprovals(ctx context.Context, h *hub.Hub, p humanlayer.FetchApprovalsParams) (humanlayer.ApprovalList, error) {
	list, err := pendingApprovals(ctx, h, cmp.Or(p.SessionID, p.RunID))
	return humanlayer.ApprovalList{Approvals: fitApprovals(list, room(ctx), humanlayer.ApprovalOf)}, err
}

func listApprovals(ctx context.Context, h *hub.Hub, p protocol.ApprovalListParams) (protocol.ApprovalList, error) {
	list, err := pendingApprovals(ctx, h, string(p.Turn))
	return protocol.ApprovalList{Approvals: fitApprovals(list, room(ctx), native)}, err
}

// native returns an approval in the native form.
func native(a *protocol.Approval) *protocol.Approval { return a }

// pendingApprovals returns the pending approvals of a turn, or all if it is "".
func pendingApprovals(ctx context.Context, h *hub.Hub, turn string) ([]*protocol.Approval, error) {
	found, err := h.Approvals().Pending(ctx, turn)
	if err != nil {
		return nil, err
	}
	list := make([]*protocol.Approval, 0, len(found))
	for _, a := range found {
		s, err := h.Query().TurnOf(ctx, a.Turn)
		if err != nil {
			return nil, err
		}
		list = append(list, approvalOf(a, s))
	}
	return list, nil
}

func getApproval(ctx context.Context, h *hub.Hub, p humanlayer.ApprovalIDs) (humanlayer.ApprovalResult, error) {
	a, err := approvalWith(ctx, h, p.ID())
	if err != nil {
		return humanlayer.ApprovalResult{}, err
	}
	return humanlayer.ApprovalResult{Approval: *fitApprovals([]*protocol.Approval{a}, room(ctx), humanlayer.ApprovalOf)[0]}, nil
}

func oneApproval(ctx context.Context, h *hub.Hub, p protocol.ApprovalParams) (protocol.ApprovalResult, error) {
	a, err := approvalWith(ctx, h, p.Approval)
	if err != nil {
		return protocol.ApprovalResult{}, err
	}
	return protocol.ApprovalResult{Approval: *fitApprovals([]*protocol.Approval{a}, room(ctx), native)[0]}, nil
}

func approvalWith(ctx context.Context, h *hub.Hub, id string) (*protocol.Approval, error) {
	a, err := h.Approvals().Find(ctx, id)
	if err != nil {
		return nil, err
	}
	s, err := h.Query().TurnOf(ctx, a.Turn)
	if err != nil {
		return nil, err
	}
	return approvalOf(a, s), nil
}

func checkSentDecision(p humanlayer.DecisionParams) error {
	return cmp.Or(p.IDs().Check(), humanLayerFamily.Error(decisionOf(p.Native()).Check()))
}

func checkDecision(p protocol.DecisionParams) error {
	return cmp.Or(protocol.NotEmpty("approval", p.ApprovalID), nativeFamily.Error(decisionOf(p).Check()))
}

func decisionOf(p protocol.DecisionParams) approval.Decision {
	return approval.Decision{
		ID: p.ApprovalID, Type: string(p.Type), Decision: string(p.Decision), Comment: p.Comment, Option: p.Option,
		UpdatedInput: orAbsent(p.UpdatedInput), Scope: string(p.Scope), Pattern: p.Pattern, Client: p.Client, Tell: p.Tell, Content: orAbsent(p.Content),
	}
}

func sendDecision(ctx context.Context, h *hub.Hub, p humanlayer.DecisionParams) (humanlayer.DecisionResult, error) {
	r, err := decideApproval(ctx, h, p.Native())
	if hubKind(err) == domain.KindApprovalNotFound {
		return humanlayer.DecisionResult{Error: "approval not found: " + headline(p.IDs().ID(), promptShown)}, nil
	}
	return humanlayer.Decided(r), err
}

func decideApproval(ctx context.Context, h *hub.Hub, p protocol.DecisionParams) (protocol.DecisionResult, error) {
	a, err := h.Approvals().Decide(ctx, decisionOf(p))
	if hubKind(err) == domain.KindAlreadyDecided {
		return protocol.DecisionResult{Error: err.Error(), Status: a.Status}, nil
	}
	r := protocol.DecisionResult{Success: err == nil, Status: a.Status, Told: a.Next}
	if a.Next != nil {
		r.ToldTurn = a.Next.Name()
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

// fitApprovals returns approvals in a form for clients, and shortens them until all of them fit into
// most bytes. It leaves none out: users would not see its question.
func fitApprovals[T shortenable](list []*protocol.Approval, most int, form func(*protocol.Approval) T) []T {
	forms := func() (out []T) {
		out = make([]T, 0, len(list))
		for _, a := range list {
			out = append(out, form(a))
		}
		return out
	}
	for _, limit := range textCaps {
		if atLeast(list) <= most {
			if all := forms(); fitting(all, most) == len(list) {
				return all
			}
		}
		for _, a := range list {
			trimApproval(a, limit)
		}
	}
	return fit(forms(), most)
}

// atLeast returns about how long the inputs and diffs of approvals are as JSON, in bytes. It is much
// cheaper than encoding them to see that they do not fit.
func atLeast(list []*protocol.Approval) (size int) {
	for _, a := range list {
		size += len(a.ToolInput) + len(a.UpdatedInput) + len(a.Diff)
	}
	return size
}

// approvalOf converts an approval of the session s.
func approvalOf(a domain.Approval, s domain.TurnInSession) *protocol.Approval {
	ambiguity, title := approval.Presented(a)
	answers := a.Answers()
	r := &protocol.Approval{
		ApprovalID: a.ID, CallID: cmp.Or(a.CallID, a.ID), Turn: s.Turn.Name(), Session: s.Session.ID, TurnUUID: s.HumanLayerSession, SessionUUID: s.Session.UUID, Agent: s.Agent,
		Status: a.Status, Stale: a.Stale, Reopens: a.Reopens, Reopened: a.Reopened,
		ReopenedAs: a.ReopenedAs, TakenAt: timeOrNil(a.Taken), CreatedAt: a.Created.UTC(), Deadline: timeOrNil(a.Deadline),
		ToolName: a.Tool, ToolInput: orEmptyObject(a.Input), Editable: a.InputEditable(), ToolUseID: a.ToolUseID(), ToolKind: a.ToolKind,
		Ambiguity: ambiguity, Title: title, Subject: a.Subject, Options: a.Options, OptionsOnly: answers.OptionsOnly, Declinable: answers.Declinable, Paths: a.Paths, Diff: approvalDiff(s.Session.CWD, a.Diffs), Channel: a.Channel,
		Plan: a.Plan, Details: a.Details, Rules: protocol.RulePreviewsOf(approval.RulePreview(a, s.Session.CWD)), TakesComment: a.TakesComment(), Explanation: a.Explanation,
		RespondedAt: timeOrNil(a.Decided), DecidedBy: a.DecidedBy, Comment: a.Comment, Response: a.Response, Option: a.Option,
		UpdatedInput: a.UpdatedInput, Type: protocol.ApprovalType(a.Type), Elicitation: protocol.ElicitationOf(a.Elicitation), Content: a.Content, Of: s, Asked: a,
	}
	if r.Type != humanContact {
		r.Type = functionCall
	}
	return r
}

func orEmptyObject(raw json.RawMessage) json.RawMessage {
	if len(raw) == 0 {
		return json.RawMessage("{}")
	}
	return raw
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
	handle(reg, d, nativeFamily, "rule.list", listRules, server.Doc("Lists the rules that decisions with a scope have made, the oldest first."))
	handle(reg, d, nativeFamily, "rule.delete", deleteRule, server.Doc("Deletes a rule that a decision has made. Later calls need approval again."))
}

func listRules(ctx context.Context, h *hub.Hub, _ none) (protocol.RuleList, error) {
	found, err := h.Approvals().Rules(ctx)
	if err != nil {
		return protocol.RuleList{}, err
	}
	list := make([]*protocol.Rule, 0, len(found))
	for _, r := range found {
		one := &protocol.Rule{
			RuleID: r.ID, Effect: r.Effect, ToolName: r.Tool, Command: r.Command, Pattern: r.Pattern, Path: r.Path, SameInput: r.SameInput, Scope: r.Scope(),
			Session: r.Session.ID, SessionUUID: r.Session.UUID, Title: r.Session.Title, CreatedAt: r.Created.UTC(),
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
