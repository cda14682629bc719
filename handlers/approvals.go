package handlers

import (
	"cmp"
	"context"
	"encoding/json"
	"strings"
	"time"

	"github.com/duet-rpc/duet-rpc/internal/approval"
	"github.com/duet-rpc/duet-rpc/internal/diff"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/hub"
	"github.com/duet-rpc/duet-rpc/internal/protocol"
	"github.com/duet-rpc/duet-rpc/server"
)

// registerApprovals registers the inbox of questions to humans (HumanLayer).
func registerApprovals(reg *server.Registry, d Domain) {
	f := sessionFamily
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
	if _, err := protocol.ReadOptions(p.Options); err != nil {
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
	options, err := protocol.ReadOptions(p.Options)
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
	return first(p.approvalIDs.check(), sessionFamily.Error(p.decision().Check()))
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

// An approvalType is what is asked of a human.
type approvalType string

// Accepted implements schema.Enum.
func (approvalType) Accepted() []string { return []string{"function_call", "human_contact"} }

// An approvalView is a question to a human in both of HumanLayer's shapes: flat, as
// today's clients have it, and by type, as its specification does.
type approvalView struct {
	ID           string                `json:"id"`
	ApprovalID   string                `json:"approval_id" doc:"The same as id."`
	CallID       string                `json:"call_id" doc:"The same as tool_use_id, or where another approval has that already, made of it: no two have the same."`
	RunID        string                `json:"run_id"`
	SessionID    string                `json:"session_id"`
	TaskID       string                `json:"task_id,omitempty"`
	ThreadID     string                `json:"thread_id,omitempty"`
	Agent        string                `json:"agent,omitempty"`
	Status       string                `json:"status" doc:"pending, approved, denied, responded, expired or cancelled."`
	Stale        bool                  `json:"stale" doc:"The process that asked is gone: approving resumes the session."`
	Reopens      string                `json:"reopens,omitempty" doc:"The approval that this one asks again: it was answered, and the agent is not known to have acted on that."`
	Reopened     string                `json:"reopened,omitempty" doc:"Why it is asked again, in words for people; show it."`
	ReopenedAs   string                `json:"reopened_as,omitempty" doc:"The approval that asks this one again."`
	TakenAt      *time.Time            `json:"taken_at,omitempty" doc:"When the agent was seen to go on from the answer."`
	CreatedAt    time.Time             `json:"created_at"`
	Deadline     *time.Time            `json:"deadline,omitempty" doc:"When it expires."`
	ToolName     string                `json:"tool_name"`
	ToolInput    json.RawMessage       `json:"tool_input"`
	Editable     bool                  `json:"input_editable" doc:"Whether a decision may have an updated_input: most agents would run the tool with their own input all the same."`
	Ambiguity    string                `json:"input_ambiguity,omitempty" doc:"Why programs may read tool_input differently, such as a member that stands there twice; the title says so too. No rule allows such a call, and it can be approved once alone."`
	ToolUseID    string                `json:"tool_use_id,omitempty" doc:"The agent's own id of the tool call that waits, as in events and conversations; agents use one again in another session."`
	ToolKind     string                `json:"tool_kind,omitempty" doc:"read, edit, delete, move, search, execute, think, fetch or other."`
	Title        string                `json:"title" doc:"What is asked, in words."`
	Subject      string                `json:"subject,omitempty"`
	Options      json.RawMessage       `json:"options,omitempty" doc:"The answers that the agent offers: [{option_id,name,kind}]."`
	OptionsOnly  bool                  `json:"options_only,omitempty" doc:"Of a human_contact: it is answered with one of its options alone, since whoever asks can be told nothing else. Other words are refused."`
	Declinable   bool                  `json:"declinable,omitempty" doc:"Of a human_contact: it can be denied too, which says that nothing was chosen, filled in or opened."`
	Paths        []string              `json:"paths,omitempty" doc:"The files that it touches."`
	Diff         string                `json:"diff,omitempty" doc:"What it would change, as a unified diff."`
	Details      string                `json:"details,omitempty" doc:"What the agent says about the tool call beside its title and input: a text for people. Of an agent that sends no input it is all that is known of the call."`
	Plan         string                `json:"plan,omitempty" doc:"What the agent would do next, where it asks to leave its plan mode: a text, mostly Markdown. No rule is made of the answer."`
	Rules        protocol.RulePreviews `json:"rule_preview,omitempty" doc:"What a decision with a scope would hold for, by scope: session and project. Absent: no rule can be made of it. It is Duet's rule; what an option of the kind allow_always makes the agent remember is the agent's, and its name says it."`
	TakesComment bool                  `json:"takes_comment" doc:"Whether the agent is told the comment with the decision. Else a decision with tell gives it as the next prompt."`
	Channel      json.RawMessage       `json:"channel,omitempty"`
	RespondedAt  *time.Time            `json:"responded_at,omitempty"`
	DecidedBy    string                `json:"decided_by,omitempty" doc:"user, rule=…, mode=…, timeout, end, overtaken (the conversation went on without it), or changed (the agent changed the tool call, and another approval asks again)."`
	Explanation  string                `json:"explanation,omitempty" doc:"What the rule or mode that decided is, in words: of a rule of a file, which one and where it stands."`
	Comment      string                `json:"comment,omitempty"`
	Response     string                `json:"response,omitempty"`
	Option       string                `json:"option,omitempty" doc:"The option that was chosen."`
	UpdatedInput json.RawMessage       `json:"updated_input,omitempty" doc:"The input as a human changed it."`
	Truncated    bool                  `json:"truncated,omitempty" doc:"Parts of the input were left out, to fit into a message."`
	*protocol.Elicitation
	Content json.RawMessage `json:"content,omitempty" doc:"The values of the form as a human filled them in."`

	Type         approvalType         `json:"type"`
	FunctionCall *functionCallRequest `json:"function_call,omitempty"`
	HumanContact *humanContactRequest `json:"human_contact,omitempty"`
}

func (a *approvalView) texts() []*string {
	return []*string{&a.Diff, &a.Plan, &a.Details, &a.Explanation, &a.Subject, &a.Comment, &a.Response}
}

// trim cuts the inputs to at most most bytes each.
func (a *approvalView) trim(most int) {
	inputs := []*json.RawMessage{&a.ToolInput, &a.UpdatedInput}
	if a.FunctionCall != nil {
		inputs = append(inputs, &a.FunctionCall.Spec.Kwargs)
	}
	for _, input := range inputs {
		if len(*input) > most {
			*input, a.Truncated = fitRaw(*input, most), true
		}
	}
	if a.Elicitation != nil && len(a.Schema) > most { // a part of it would be another form
		whole := *a.Elicitation
		whole.Schema = nil
		a.Elicitation, a.Truncated = &whole, true
	}
}

// fitApprovals shortens approvals until all of them fit into most bytes: a
// question that is not listed would wait for ever.
func fitApprovals(list []*approvalView, most int) []*approvalView {
	for _, limit := range textCaps {
		if fitting(list, most) == len(list) {
			return list
		}
		for _, a := range list {
			a.trim(limit)
		}
	}
	return fit(list, most)
}

type functionCallRequest struct {
	RunID  string             `json:"run_id"`
	CallID string             `json:"call_id"`
	Spec   functionCallSpec   `json:"spec"`
	Status functionCallStatus `json:"status"`
}

type functionCallSpec struct {
	Fn            string          `json:"fn"`
	Kwargs        json.RawMessage `json:"kwargs"`
	Channel       json.RawMessage `json:"channel,omitempty"`
	RejectOptions json.RawMessage `json:"reject_options,omitempty"`
}

type functionCallStatus struct {
	RequestedAt time.Time  `json:"requested_at"`
	RespondedAt *time.Time `json:"responded_at,omitempty"`
	Approved    *bool      `json:"approved,omitempty"`
	Comment     string     `json:"comment,omitempty"`
}

type humanContactRequest struct {
	RunID  string             `json:"run_id"`
	CallID string             `json:"call_id"`
	Spec   humanContactSpec   `json:"spec"`
	Status humanContactStatus `json:"status"`
}

type humanContactSpec struct {
	Msg             string           `json:"msg"`
	Subject         string           `json:"subject,omitempty"`
	Channel         json.RawMessage  `json:"channel,omitempty"`
	ResponseOptions []responseOption `json:"response_options,omitempty"`
}

type responseOption struct {
	Name  string `json:"name"`
	Title string `json:"title,omitempty"`
}

type humanContactStatus struct {
	RequestedAt        time.Time  `json:"requested_at"`
	RespondedAt        *time.Time `json:"responded_at,omitempty"`
	Response           string     `json:"response,omitempty"`
	ResponseOptionName string     `json:"response_option_name,omitempty"`
}

// approvalOf is an approval of the session s.
func approvalOf(a domain.Approval, s domain.Session) *approvalView {
	ambiguity, title := approval.Presented(a)
	answers := a.Answers()
	r := &approvalView{
		ID: a.ID, ApprovalID: a.ID, CallID: cmp.Or(a.CallID, a.ID), RunID: s.RunID, SessionID: s.SessionID, ThreadID: s.Thread.UUID, Agent: s.Agent,
		Status: a.Status, Stale: a.Stale, Reopens: a.Reopens, Reopened: a.Reopened,
		ReopenedAs: a.ReopenedAs, TakenAt: timeOrNil(a.Taken), CreatedAt: a.Created.UTC(), Deadline: timeOrNil(a.Deadline),
		ToolName: a.Tool, ToolInput: orEmptyObject(a.Input), Editable: a.InputEditable(), ToolUseID: a.ToolUseID(), ToolKind: a.ToolKind,
		Ambiguity: ambiguity, Title: title, Subject: a.Subject, Options: protocol.Options(a.Options), OptionsOnly: answers.OptionsOnly, Declinable: answers.Declinable, Paths: a.Paths, Diff: approvalDiff(s.Thread.CWD, a.Diffs), Channel: a.Channel,
		Plan: a.Plan, Details: a.Details, Rules: rulesOf(a, s.Thread.CWD), TakesComment: a.TakesComment(), Explanation: a.Explanation,
		RespondedAt: timeOrNil(a.Decided), DecidedBy: a.DecidedBy, Comment: a.Comment, Response: a.Response, Option: a.Option,
		UpdatedInput: a.UpdatedInput, Type: approvalType(a.Type), Elicitation: protocol.ElicitationOf(a.Elicitation), Content: a.Content,
	}
	if s.Task > 0 {
		r.TaskID = domain.TaskName(s.Task)
	}
	if r.Type == humanContact {
		r.HumanContact = &humanContactRequest{
			RunID: r.RunID, CallID: r.CallID,
			Spec:   humanContactSpec{a.Title, a.Subject, a.Channel, responseOptions(a.Options)},
			Status: humanContactStatus{r.CreatedAt, r.RespondedAt, a.Response, a.Option},
		}
		return r
	}
	r.Type = functionCall
	r.FunctionCall = &functionCallRequest{
		RunID: r.RunID, CallID: r.CallID,
		Spec:   functionCallSpec{Fn: a.Tool, Kwargs: r.ToolInput, Channel: a.Channel},
		Status: functionCallStatus{RequestedAt: r.CreatedAt, RespondedAt: r.RespondedAt, Approved: approvedOrNil(a.Status), Comment: a.Comment},
	}
	return r
}

// rulesOf is what a rule of an approval would hold for.
func rulesOf(a domain.Approval, cwd string) protocol.RulePreviews {
	return protocol.RulePreviewsOf(approval.RulePreview(a, cwd))
}

// approvedOrNil is nil while nobody has decided.
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

// responseOptions are an agent's options as HumanLayer has them.
func responseOptions(options []domain.Option) []responseOption {
	list := make([]responseOption, 0, len(options))
	for _, o := range options {
		list = append(list, responseOption{cmp.Or(o.ID, o.Name), o.Name})
	}
	return list
}

// approvalDiff is what a tool would change, as a unified diff.
func approvalDiff(cwd string, diffs []domain.Diff) string {
	var all strings.Builder
	for _, d := range diffs {
		all.WriteString(diff.Unified(cwd, d.Path, d.OldText, &d.NewText))
	}
	return all.String()
}
