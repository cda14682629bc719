package handlers

import (
	"cmp"
	"context"
	"encoding/json"

	"github.com/duet-rpc/duet-rpc/internal/approval"
	"github.com/duet-rpc/duet-rpc/internal/dialect"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/hub"
	"github.com/duet-rpc/duet-rpc/server"
)

// registerApprovals registers the inbox of questions to humans (HumanLayer).
func registerApprovals(reg *server.Registry, d Domain) {
	f := dialect.Session
	handle(reg, d, f, "createApproval", createApproval,
		server.Doc("Asks a human whether a tool may run, or something else; the answer comes as the event approval_resolved, or by getApproval."))
	handle(reg, d, f, "fetchApprovals", fetchApprovals, server.Doc("Lists what waits for a human's answer, the oldest first."))
	handle(reg, d, f, "getApproval", getApproval, server.Doc("Tells everything about an approval."))
	handle(reg, d, f, "sendDecision", sendDecision,
		server.Doc("Answers an approval. The first answer counts: for a later one success is false, and error says what was decided."))
}

const (
	functionCall approvalType = "function_call"
	humanContact approvalType = "human_contact"
)

type createApprovalParams struct {
	RunID     string          `json:"run_id,omitempty" doc:"The run that waits; every id of it will do. This or session_id is needed."`
	SessionID string          `json:"session_id,omitempty" doc:"Another name for run_id."`
	Type      approvalType    `json:"type,omitempty" doc:"Absent: function_call."`
	ToolName  string          `json:"tool_name,omitempty" doc:"Of a function_call: the tool."`
	ToolInput json.RawMessage `json:"tool_input,omitempty" doc:"Of a function_call: its input."`
	ToolUseID string          `json:"tool_use_id,omitempty" doc:"The agent's own id of the tool call."`
	Message   string          `json:"message,omitempty" doc:"Of a human_contact: what to ask."`
	Subject   string          `json:"subject,omitempty" doc:"Of a human_contact: what it is about."`
	Options   json.RawMessage `json:"options,omitempty" doc:"Answers to choose from: [{option_id,name,kind}]."`
	Channel   json.RawMessage `json:"channel,omitempty" doc:"Kept, and given back."`
	Schema    json.RawMessage `json:"schema,omitempty" doc:"Of a human_contact: a form to fill in, a flat object of JSON Schema as of ACP's elicitation."`
	URL       string          `json:"url,omitempty" doc:"Of a human_contact: an address to open, once a person agrees."`
}

// elicitation is what the question asks for beyond words.
func (p createApprovalParams) elicitation() domain.Elicitation {
	switch schema := orAbsent(p.Schema); {
	case schema != nil:
		return domain.Elicitation{Mode: domain.ElicitForm, Schema: schema}
	case p.URL != "":
		return domain.Elicitation{Mode: domain.ElicitURL, URL: p.URL}
	}
	return domain.Elicitation{}
}

func (p createApprovalParams) check() error {
	if p.SessionID == "" {
		if err := need("run_id", p.RunID); err != nil {
			return err
		}
	}
	if p.Type == humanContact {
		return first(need("message", p.Message), p.checkOptions())
	}
	if p.elicitation().Mode != "" {
		return server.InvalidParam(server.ParamError{Param: "type", Expected: "human_contact, for a form or an address", Received: "function_call"})
	}
	return first(need("tool_name", p.ToolName), p.checkOptions())
}

func (p createApprovalParams) checkOptions() error {
	if _, err := dialect.ReadOptions(p.Options); err != nil {
		return server.InvalidParam(server.ParamError{Param: "options", Expected: "an array of {option_id,name,kind}", Received: "something else"})
	}
	return nil
}

type createApprovalResult struct {
	ApprovalID string `json:"approval_id"`
	CallID     string `json:"call_id"`
	Status     string `json:"status" doc:"pending, unless a rule or a mode has answered already."`
}

func createApproval(ctx context.Context, h *hub.Hub, p createApprovalParams) (createApprovalResult, error) {
	options, err := dialect.ReadOptions(p.Options)
	if err != nil {
		return createApprovalResult{}, err // check has looked
	}
	a, err := h.Approvals().Create(ctx, approval.Spec{
		Run: cmp.Or(p.RunID, p.SessionID), Type: string(p.Type), Tool: p.ToolName, Input: p.ToolInput, CallID: p.ToolUseID, Title: p.Message,
		Subject: p.Subject, Options: options, Channel: p.Channel, Elicitation: p.elicitation(),
	})
	return createApprovalResult{a.ID, a.CallID, a.Status}, err
}

type fetchApprovalsParams struct {
	SessionID string `json:"session_id,omitempty" doc:"Only those of this session; every id of the run will do."`
	RunID     string `json:"run_id,omitempty" doc:"Another name for session_id."`
}

type approvalList struct {
	Approvals []*approvalView `json:"approvals"`
}

func fetchApprovals(ctx context.Context, h *hub.Hub, p fetchApprovalsParams) (approvalList, error) {
	found, err := h.Approvals().Pending(ctx, cmp.Or(p.SessionID, p.RunID))
	if err != nil {
		return approvalList{}, err
	}
	list := make([]*approvalView, 0, len(found))
	for _, a := range found {
		s, err := h.Query().SessionOf(ctx, a.Run)
		if err != nil {
			return approvalList{}, err
		}
		list = append(list, approvalOf(a, s))
	}
	return approvalList{fitApprovals(list, room(ctx))}, nil
}

// approvalIDs name one approval.
type approvalIDs struct {
	CallID     string `json:"call_id,omitempty" doc:"The call_id of the approval, or its id. This or approval_id is needed."`
	ApprovalID string `json:"approval_id,omitempty" doc:"The approval."`
}

func (p approvalIDs) id() string {
	if p.ApprovalID != "" {
		return p.ApprovalID
	}
	return p.CallID
}

func (p approvalIDs) check() error {
	if p.ApprovalID != "" {
		return nil
	}
	return need("call_id", p.CallID)
}

type approvalResult struct {
	Approval approvalView `json:"approval"`
}

func getApproval(ctx context.Context, h *hub.Hub, p approvalIDs) (approvalResult, error) {
	a, err := h.Approvals().Find(ctx, p.id())
	if err != nil {
		return approvalResult{}, err
	}
	s, err := h.Query().SessionOf(ctx, a.Run)
	if err != nil {
		return approvalResult{}, err
	}
	one := []*approvalView{approvalOf(a, s)}
	fitApprovals(one, room(ctx))
	return approvalResult{*one[0]}, nil
}

// A verdict is how an approval is answered.
type verdict string

// Accepted implements schema.Enum.
func (verdict) Accepted() []string { return []string{"approve", "deny", "respond", "cancel"} }

// A decisionScope is for what a decision counts.
type decisionScope string

// Accepted implements schema.Enum.
func (decisionScope) Accepted() []string { return []string{"once", "session", "project"} }

type decisionParams struct {
	approvalIDs
	Type         approvalType    `json:"type,omitempty" doc:"What it is thought to be; absent: whatever it is."`
	Decision     verdict         `json:"decision" doc:"A function_call is approved or denied, a human_contact is responded to; one in which an agent offers options can be denied too. One with a mode is responded to, denied (declined), or cancelled."`
	Comment      string          `json:"comment,omitempty" doc:"Why, or the response. Needed to deny and to respond (unless option is the response)."`
	UpdatedInput json.RawMessage `json:"updated_input,omitempty" doc:"The tool runs with this input instead. Only where the approval is input_editable; else deny, and say in the comment what to run."`
	Scope        decisionScope   `json:"scope,omitempty" doc:"once, or a rule for the session or the project, which answers what waits there too."`
	Option       string          `json:"option,omitempty" doc:"One of the approval's options: its option_id or name. It has to say what the decision says."`
	Content      json.RawMessage `json:"content,omitempty" doc:"The values of a form, an object that fits the approval's schema. An error names the field, such as content.port."`
	Pattern      string          `json:"pattern,omitempty" doc:"With a scope: of the commands or files that the rule is to hold for, instead of what rule_preview says. Of commands as in the configuration; of files * stands for no slash, and src/** for all below src. It has to fit what is asked."`
	Tell         bool            `json:"tell,omitempty" doc:"The comment is to reach the agent: where it takes none with the decision, as the next prompt of its conversation."`
}

func (p decisionParams) check() error {
	return first(p.approvalIDs.check(), dialect.Session.Error(p.decision().Check()))
}

func (p decisionParams) decision() approval.Decision {
	return approval.Decision{
		ID: p.id(), Type: string(p.Type), Decision: string(p.Decision), Comment: p.Comment, Option: p.Option,
		UpdatedInput: orAbsent(p.UpdatedInput), Scope: string(p.Scope), Pattern: p.Pattern, Tell: p.Tell, Content: orAbsent(p.Content),
	}
}

type decisionResult struct {
	Success bool   `json:"success"`
	Error   string `json:"error,omitempty" doc:"Why not."`
	Status  string `json:"status,omitempty" doc:"The approval's status now."`

	ToldSessionID string `json:"told_session_id,omitempty" doc:"The session whose prompt gives the comment to the agent, where tell made one."`
	ToldTaskID    string `json:"told_task_id,omitempty" doc:"The same as a task."`
}

func sendDecision(ctx context.Context, h *hub.Hub, p decisionParams) (decisionResult, error) {
	a, err := h.Approvals().Decide(ctx, p.decision())
	switch hubKind(err) {
	case domain.KindApprovalNotFound:
		return decisionResult{Error: "approval not found: " + headline(p.id(), promptShown)}, nil
	case domain.KindAlreadyDecided:
		return decisionResult{Error: err.Error(), Status: a.Status}, nil
	}
	r := decisionResult{Success: err == nil, Status: a.Status}
	if a.Next != nil {
		r.ToldSessionID, r.ToldTaskID = a.Next.SessionID, domain.TaskName(a.Next.Task)
	}
	return r, err
}

// orAbsent is nil for null, which clients write for what they do not give.
func orAbsent(raw json.RawMessage) json.RawMessage {
	if string(raw) == "null" {
		return nil
	}
	return raw
}
