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

// registerApprovals registers the methods that list and answer approvals.
func registerApprovals(reg *server.Registry, d Domain) {
	f := nativeFamily
	handle(reg, d, f, "approval.list", listApprovals, server.LongRunning(),
		server.Doc("Lists what waits for a person's answer, the oldest first."))
	handle(reg, d, f, "approval.get", oneApproval, server.LongRunning(), server.Doc("Returns an approval."))
	handle(reg, d, f, "approval.create", createApproval,
		server.Doc("Asks whether a tool may run, or asks the user a question, and returns the approval at once. The turn waits for the answer, "+
			"which comes as the event approval.closed, or from approval.get. Rules and modes may decide before the user. Refused (`bad_state`) "+
			"if the turn has ended."))
	handle(reg, d, f, "approval.decide", decideApproval,
		server.Doc("Answers an approval. The first answer wins: for a later one, success is false and error has the decision."))
}

const (
	functionCall = protocol.FunctionCall
	humanContact = protocol.HumanContact
)

func listApprovals(ctx context.Context, h *hub.Hub, p protocol.ApprovalListParams) (protocol.ApprovalList, error) {
	list, err := pendingApprovals(ctx, h, string(p.Turn))
	return protocol.ApprovalList{Approvals: protocol.FitApprovals(list, protocol.Room(ctx), native)}, err
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
		list = append(list, approvalOf(h, a, s))
	}
	return list, nil
}

func oneApproval(ctx context.Context, h *hub.Hub, p protocol.ApprovalParams) (protocol.ApprovalResult, error) {
	a, err := approvalWith(ctx, h, p.Approval)
	if err != nil {
		return protocol.ApprovalResult{}, err
	}
	return fitted(ctx, a), nil
}

// fitted returns an approval that fits into a message.
func fitted(ctx context.Context, a *protocol.Approval) protocol.ApprovalResult {
	return protocol.ApprovalResult{Approval: *protocol.FitApprovals([]*protocol.Approval{a}, protocol.Room(ctx), native)[0]}
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
	return approvalOf(h, a, s), nil
}

func createApproval(ctx context.Context, h *hub.Hub, p protocol.CreateApprovalParams) (protocol.ApprovalResult, error) {
	options, err := protocol.ReadOptions(p.Options)
	if err != nil {
		return protocol.ApprovalResult{}, err // Check refuses it before
	}
	a, err := h.Approvals().Create(ctx, approval.Spec{
		Turn: string(p.Turn), Type: string(p.Type), Tool: p.ToolName, Input: p.ToolInput, CallID: p.ToolUseID, Title: p.Message,
		Subject: p.Subject, Options: options, Channel: p.Channel, Elicitation: p.Elicitation(),
	})
	if err != nil {
		return protocol.ApprovalResult{}, err
	}
	s, err := h.Query().TurnOf(ctx, a.Turn)
	if err != nil {
		return protocol.ApprovalResult{}, err
	}
	return fitted(ctx, approvalOf(h, a, s)), nil
}

func checkDecision(p protocol.DecisionParams) error {
	return cmp.Or(protocol.NotEmpty("approval", p.ApprovalID), nativeFamily.Error(decisionOf(p).Check()))
}

func decisionOf(p protocol.DecisionParams) approval.Decision {
	return approval.Decision{
		ID: p.ApprovalID, Type: string(p.Type), Decision: string(p.Decision), Comment: p.Comment, Option: p.Option,
		UpdatedInput: protocol.OrAbsent(p.UpdatedInput), Scope: string(p.Scope), Pattern: p.Pattern, Client: p.Client, Tell: p.Tell, Fingerprint: p.Fingerprint,
		Content: protocol.OrAbsent(p.Content),
	}
}

func decideApproval(ctx context.Context, h *hub.Hub, p protocol.DecisionParams) (protocol.DecisionResult, error) {
	a, err := h.Approvals().Decide(ctx, decisionOf(p))
	if hubKind(err) == domain.KindAlreadyDecided {
		return protocol.DecisionResult{Error: err.Error(), Status: protocol.ApprovalStatus(a.Status)}, nil
	}
	r := protocol.DecisionResult{Success: err == nil, Status: protocol.ApprovalStatus(a.Status), Told: a.Next}
	if a.Next != nil {
		r.ToldTurn = a.Next.Name()
	}
	return r, err
}

// approvalOf converts an approval of the session s.
func approvalOf(h *hub.Hub, a domain.Approval, s domain.TurnInSession) *protocol.Approval {
	ambiguity, title := approval.Presented(a)
	answers := a.Answers()
	rule := approval.RulePreview(a, h.Approvals().DirectoriesOf(s.Session.CWD))
	r := &protocol.Approval{
		ApprovalID: a.ID, CallID: cmp.Or(a.CallID, a.ID), Turn: s.Turn.Name(), Session: s.Session.ID, TurnUUID: s.HumanLayerSession,
		SessionUUID: s.Session.UUID, Agent: s.Agent,
		Status: protocol.ApprovalStatus(a.Status), Stale: a.Stale, Reopens: a.Reopens, Reopened: a.Reopened,
		ReopenedAs: a.ReopenedAs, TakenAt: protocol.TimeOrNil(a.Taken), CreatedAt: a.Created.UTC(), Deadline: protocol.TimeOrNil(a.Deadline), Fingerprint: a.Fingerprint(),
		ToolName: a.Tool, ToolInput: orEmptyObject(a.Input), Editable: a.InputEditable(),
		TextMember: protocol.TextMember(a.InputEditable(), a.Input), ToolUseID: a.ToolUseID(), ToolKind: a.ToolKind,
		Ambiguity: ambiguity, Title: title, Subject: a.Subject, Options: a.Options, OptionsOnly: answers.OptionsOnly,
		Declinable: answers.Declinable, Paths: a.Paths, Diff: approvalDiff(s.Session.CWD, a.Diffs), Channel: a.Channel,
		Plan: a.Plan, Details: a.Details, Rules: protocol.RulePreviewsOf(rule), TakesComment: a.TakesComment(),
		Explanation: a.Explanation,
		RespondedAt: protocol.TimeOrNil(a.Decided), DecidedBy: a.DecidedBy, Comment: a.Comment, Response: a.Response, Option: a.Option,
		UpdatedInput: a.UpdatedInput, Type: protocol.ApprovalType(a.Type), Elicitation: protocol.ElicitationOf(a.Elicitation), Content: a.Content,
		Of: s, Asked: a,
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
	handle(reg, d, nativeFamily, "rule.list", listRules,
		server.Doc("Lists the rules that decisions with a scope have made, the oldest first."))
	handle(reg, d, nativeFamily, "rule.delete", deleteRule,
		server.Doc("Deletes a rule that a decision has made. Later calls need approval again."))
}

func listRules(ctx context.Context, h *hub.Hub, _ none) (protocol.RuleList, error) {
	found, err := h.Approvals().Rules(ctx)
	if err != nil {
		return protocol.RuleList{}, err
	}
	list := make([]*protocol.Rule, 0, len(found))
	for _, r := range found {
		one := &protocol.Rule{
			RuleID: r.ID, Effect: r.Effect, ToolName: r.Tool, Command: r.Command, Pattern: r.Pattern, Path: r.Path, SameInput: r.SameInput,
			Scope:   r.Scope(),
			Session: r.Session.ID, SessionUUID: r.Session.UUID, Title: r.Session.Title, CreatedAt: r.Created.UTC(),
		}
		list = append(list, one)
	}
	return protocol.RuleList{Rules: protocol.Fit(list, protocol.Room(ctx))}, nil
}

func deleteRule(ctx context.Context, h *hub.Hub, p protocol.DeleteRuleParams) (protocol.DeleteRuleResult, error) {
	if err := h.Approvals().ForgetRule(ctx, p.RuleID); err != nil {
		return protocol.DeleteRuleResult{}, err
	}
	return protocol.DeleteRuleResult{Success: true}, nil
}
