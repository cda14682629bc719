package humanlayer

import (
	"cmp"
	"encoding/json"
	"time"

	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/protocol"
)

type ApprovalList struct {
	Approvals []*Approval `json:"approvals"`
}

type ApprovalResult struct {
	Approval Approval `json:"approval"`
}

// ApprovalIDs name one approval.
type ApprovalIDs struct {
	CallID     string `json:"call_id,omitempty" doc:"The call_id or the id of the approval. This or approval_id is required."`
	ApprovalID string `json:"approval_id,omitempty" doc:"The approval's id."`
}

// DecisionParams answer an approval, which they name like [ApprovalIDs].
type DecisionParams struct {
	CallID       string                 `json:"call_id,omitempty" doc:"The call_id or the id of the approval. This or approval_id is required."`
	ApprovalID   string                 `json:"approval_id,omitempty" doc:"The approval's id."`
	Type         protocol.ApprovalType  `json:"type,omitempty" doc:"The expected type. Absent: any."`
	Decision     protocol.Verdict       `json:"decision" doc:"function_call: approve or deny. human_contact: respond, or deny if an agent offers options. An approval with a mode: respond, deny (decline) or cancel."`
	Comment      string                 `json:"comment,omitempty" doc:"The reason, or the response. Required for deny, and for respond unless option is the response."`
	UpdatedInput json.RawMessage        `json:"updated_input,omitempty" doc:"The tool runs with this input instead. Only if the approval is input_editable; otherwise deny, and write into the comment what to run."`
	Scope        protocol.DecisionScope `json:"scope,omitempty" doc:"once, or where the decision becomes a rule. The rule also decides pending approvals there."`
	Option       string                 `json:"option,omitempty" doc:"The option_id or name of one of the approval's options. It must agree with the decision."`
	Content      json.RawMessage        `json:"content,omitempty" doc:"The values of a form: an object that fits the approval's schema. An error names the field, such as content.port."`
	Pattern      string                 `json:"pattern,omitempty" doc:"With a scope: the rule's pattern, in place of that in rule_preview. Commands: as in the configuration. Files: * does not match a slash, and src/** matches everything below src. The pattern must match this call."`
	Client       string                 `json:"client,omitempty" doc:"The deciding client's name for people, such as VS Code. Events and the conversation show it as decided_in. At most 100 bytes."`
	Tell         bool                   `json:"tell,omitempty" doc:"Deliver the comment to the agent. If the agent does not receive comments with decisions, the comment is the next prompt of its conversation."`
}

// An Approval is a question to a person, in both forms of HumanLayer: flat for its current clients,
// and by type as in its specification.
type Approval struct {
	ID           string                `json:"id"`
	ApprovalID   string                `json:"approval_id" doc:"Same as id."`
	CallID       string                `json:"call_id" doc:"A unique id: tool_use_id, or an id made from it if another approval already has it."`
	RunID        string                `json:"run_id"`
	SessionID    string                `json:"session_id"`
	TaskID       string                `json:"task_id,omitempty"`
	ThreadID     string                `json:"thread_id,omitempty"`
	Agent        string                `json:"agent,omitempty"`
	Status       string                `json:"status" doc:"pending, approved, denied, responded, expired or cancelled."`
	Stale        bool                  `json:"stale" doc:"The process that asked is gone. Approving resumes the session."`
	Reopens      string                `json:"reopens,omitempty" doc:"The approval that this one repeats: it was answered, but the agent is not known to have acted on the answer."`
	Reopened     string                `json:"reopened,omitempty" doc:"Why Duet asks again, for people; show it."`
	ReopenedAs   string                `json:"reopened_as,omitempty" doc:"The approval that repeats this one."`
	TakenAt      *time.Time            `json:"taken_at,omitempty" doc:"When the agent was seen to act on the answer."`
	CreatedAt    time.Time             `json:"created_at"`
	Deadline     *time.Time            `json:"deadline,omitempty" doc:"When the approval expires."`
	ToolName     string                `json:"tool_name"`
	ToolInput    json.RawMessage       `json:"tool_input"`
	Editable     bool                  `json:"input_editable" doc:"Whether a decision may have updated_input. Most agents would run the tool with their own input anyway."`
	Ambiguity    string                `json:"input_ambiguity,omitempty" doc:"Why programs may read tool_input differently, such as a duplicate member; the title says so too. No rule allows such a call, and a user can approve it only once."`
	ToolUseID    string                `json:"tool_use_id,omitempty" doc:"The agent's id of the waiting tool call, as in events and conversations. Agents reuse ids in other sessions."`
	ToolKind     string                `json:"tool_kind,omitempty" doc:"read, edit, delete, move, search, execute, think, fetch or other."`
	Title        string                `json:"title" doc:"The question, for people."`
	Subject      string                `json:"subject,omitempty"`
	Options      []domain.Option       `json:"options,omitzero" doc:"The agent's answers to choose from: [{option_id,name,kind}]."`
	OptionsOnly  bool                  `json:"options_only,omitempty" doc:"human_contact: only one of the options is an answer, because the agent can receive nothing else. Other text is refused."`
	Declinable   bool                  `json:"declinable,omitempty" doc:"human_contact: it can also be denied, which means that the user chose, filled in or opened nothing."`
	Paths        []string              `json:"paths,omitempty" doc:"The files that the call touches."`
	Diff         string                `json:"diff,omitempty" doc:"The changes that the tool would make, as a unified diff."`
	Details      string                `json:"details,omitempty" doc:"The agent's text about the tool call, in addition to title and input, for people. If an agent sends no input, nothing else is known about the call."`
	Plan         string                `json:"plan,omitempty" doc:"The agent's plan, if it asks to leave its plan mode; mostly Markdown. The answer makes no rule."`
	Rules        protocol.RulePreviews `json:"rule_preview,omitempty" doc:"The rule that a decision with a scope would make, by the scopes of sendDecision other than once. Absent: no rule is possible. This is Duet's rule; the name of an option of kind allow_always describes what the agent itself remembers."`
	TakesComment bool                  `json:"takes_comment" doc:"Whether the agent receives the comment with the decision. If not, a decision with tell sends it as the next prompt."`
	Channel      json.RawMessage       `json:"channel,omitempty"`
	RespondedAt  *time.Time            `json:"responded_at,omitempty"`
	DecidedBy    string                `json:"decided_by,omitempty" doc:"user, rule=…, mode=…, timeout, end, overtaken (the conversation continued without it), or changed (the agent changed the tool call, and another approval asks again)."`
	Explanation  string                `json:"explanation,omitempty" doc:"Describes the rule or mode that decided. For a rule of a file: which rule, and its place."`
	Comment      string                `json:"comment,omitempty"`
	Response     string                `json:"response,omitempty"`
	Option       string                `json:"option,omitempty" doc:"The chosen option."`
	UpdatedInput json.RawMessage       `json:"updated_input,omitempty" doc:"The input as the user changed it."`
	Truncated    bool                  `json:"truncated,omitempty" doc:"Parts of the input or the texts were left out to fit into a message."`
	*protocol.Elicitation
	Content json.RawMessage `json:"content,omitempty" doc:"The values of the form as the user filled them in."`

	Type         protocol.ApprovalType `json:"type"`
	FunctionCall *FunctionCallRequest  `json:"function_call,omitempty"`
	HumanContact *HumanContactRequest  `json:"human_contact,omitempty"`
}

type FunctionCallRequest struct {
	RunID  string             `json:"run_id"`
	CallID string             `json:"call_id"`
	Spec   FunctionCallSpec   `json:"spec"`
	Status FunctionCallStatus `json:"status"`
}

type FunctionCallSpec struct {
	Fn            string          `json:"fn"`
	Kwargs        json.RawMessage `json:"kwargs"`
	Channel       json.RawMessage `json:"channel,omitempty"`
	RejectOptions json.RawMessage `json:"reject_options,omitempty"`
}

type FunctionCallStatus struct {
	RequestedAt time.Time  `json:"requested_at"`
	RespondedAt *time.Time `json:"responded_at,omitempty"`
	Approved    *bool      `json:"approved,omitempty"`
	Comment     string     `json:"comment,omitempty"`
}

type HumanContactRequest struct {
	RunID  string             `json:"run_id"`
	CallID string             `json:"call_id"`
	Spec   HumanContactSpec   `json:"spec"`
	Status HumanContactStatus `json:"status"`
}

type HumanContactSpec struct {
	Msg             string           `json:"msg"`
	Subject         string           `json:"subject,omitempty"`
	Channel         json.RawMessage  `json:"channel,omitempty"`
	ResponseOptions []ResponseOption `json:"response_options,omitempty"`
}

type ResponseOption struct {
	Name  string `json:"name"`
	Title string `json:"title,omitempty"`
}

type HumanContactStatus struct {
	RequestedAt        time.Time  `json:"requested_at"`
	RespondedAt        *time.Time `json:"responded_at,omitempty"`
	Response           string     `json:"response,omitempty"`
	ResponseOptionName string     `json:"response_option_name,omitempty"`
}

type FetchApprovalsParams struct {
	SessionID string `json:"session_id,omitempty" doc:"Only approvals of this session, by any id of the run."`
	RunID     string `json:"run_id,omitempty" doc:"Alias of session_id."`
}

// ID returns the id of the approval.
func (p ApprovalIDs) ID() string { return cmp.Or(p.ApprovalID, p.CallID) }

func (p ApprovalIDs) Check() error { return protocol.NotEmpty("call_id", p.ID()) }

// IDs returns the names of the approval.
func (p DecisionParams) IDs() ApprovalIDs { return ApprovalIDs{p.ApprovalID, p.CallID} }

// Native returns the parameters of approval.decide.
func (p DecisionParams) Native() protocol.DecisionParams {
	return protocol.DecisionParams{
		ApprovalID: p.IDs().ID(), Type: p.Type, Decision: p.Decision, Comment: p.Comment, UpdatedInput: p.UpdatedInput, Scope: p.Scope,
		Option: p.Option, Content: p.Content, Pattern: p.Pattern, Client: p.Client, Tell: p.Tell,
	}
}

// A DecisionResult is the result of sendDecision.
type DecisionResult struct {
	Success bool   `json:"success"`
	Error   string `json:"error,omitempty" doc:"Why the decision has no effect."`
	Status  string `json:"status,omitempty" doc:"The approval's current status."`

	ToldSessionID string `json:"told_session_id,omitempty" doc:"The session whose prompt delivers the comment, if tell created one."`
	ToldTaskID    string `json:"told_task_id,omitempty" doc:"The task id of that session."`
}

// Decided returns the result of sendDecision.
func Decided(r protocol.DecisionResult) DecisionResult {
	d := DecisionResult{Success: r.Success, Error: r.Error, Status: string(r.Status)}
	if r.Told != nil {
		d.ToldSessionID, d.ToldTaskID = r.Told.HumanLayerSession, domain.TaskName(r.Told.Task)
	}
	return d
}

func (a *Approval) Texts() []*string {
	return []*string{&a.Diff, &a.Plan, &a.Details, &a.Explanation, &a.Subject, &a.Comment, &a.Response}
}

// ApprovalOf returns an approval in both forms of HumanLayer: flat for its current clients, and by
// type as in its specification.
func ApprovalOf(a *protocol.Approval) *Approval {
	r := &Approval{
		ID: a.ApprovalID, ApprovalID: a.ApprovalID, CallID: a.CallID, RunID: a.Of.HumanLayerRun, SessionID: a.Of.HumanLayerSession,
		ThreadID: a.SessionUUID, Agent: a.Agent,
		Status: string(a.Status), Stale: a.Stale, Reopens: a.Reopens, Reopened: a.Reopened, ReopenedAs: a.ReopenedAs, TakenAt: a.TakenAt,
		CreatedAt: a.CreatedAt,
		Deadline:  a.Deadline, ToolName: a.ToolName, ToolInput: a.ToolInput, Editable: a.Editable, Ambiguity: a.Ambiguity, ToolUseID: a.ToolUseID,
		ToolKind: a.ToolKind, Title: a.Title, Subject: a.Subject, Options: a.Options, OptionsOnly: a.OptionsOnly, Declinable: a.Declinable,
		Paths: a.Paths, Diff: a.Diff, Details: a.Details, Plan: a.Plan, Rules: a.Rules, TakesComment: a.TakesComment, Channel: a.Channel,
		RespondedAt: a.RespondedAt, DecidedBy: a.DecidedBy, Explanation: a.Explanation, Comment: a.Comment, Response: a.Response,
		Option:       a.Option,
		UpdatedInput: a.UpdatedInput, Truncated: a.Truncated, Elicitation: a.Elicitation, Content: a.Content, Type: a.Type,
	}
	if a.Of.Task > 0 {
		r.TaskID = domain.TaskName(a.Of.Task)
	}
	if a.Type == protocol.HumanContact {
		r.HumanContact = &HumanContactRequest{
			RunID: r.RunID, CallID: r.CallID,
			Spec: HumanContactSpec{Msg: a.Asked.Title, Subject: a.Asked.Subject, Channel: a.Channel, ResponseOptions: responseOptions(a.Options)},
			Status: HumanContactStatus{
				RequestedAt: r.CreatedAt, RespondedAt: r.RespondedAt, Response: a.Asked.Response, ResponseOptionName: a.Option,
			},
		}
		return r
	}
	r.FunctionCall = &FunctionCallRequest{
		RunID: r.RunID, CallID: r.CallID,
		Spec: FunctionCallSpec{Fn: a.ToolName, Kwargs: r.ToolInput, Channel: a.Channel},
		Status: FunctionCallStatus{
			RequestedAt: r.CreatedAt, RespondedAt: r.RespondedAt, Approved: approvedOrNil(string(a.Status)), Comment: a.Asked.Comment,
		},
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

// responseOptions converts an agent's options to those of HumanLayer.
func responseOptions(options []domain.Option) []ResponseOption {
	list := make([]ResponseOption, 0, len(options))
	for _, o := range options {
		list = append(list, ResponseOption{Name: cmp.Or(o.ID, o.Name), Title: o.Name})
	}
	return list
}

type CreateApprovalParams struct {
	RunID     string                `json:"run_id,omitempty" doc:"The run that waits, by any id. This or session_id is required."`
	SessionID string                `json:"session_id,omitempty" doc:"Alias of run_id."`
	Type      protocol.ApprovalType `json:"type,omitempty" doc:"Default: function_call."`
	ToolName  string                `json:"tool_name,omitempty" doc:"function_call: the tool."`
	ToolInput json.RawMessage       `json:"tool_input,omitempty" doc:"function_call: the tool's input."`
	ToolUseID string                `json:"tool_use_id,omitempty" doc:"The agent's id of the tool call."`
	Message   string                `json:"message,omitempty" doc:"human_contact: the question."`
	Subject   string                `json:"subject,omitempty" doc:"human_contact: the topic."`
	Options   json.RawMessage       `json:"options,omitempty" doc:"Answers to choose from: [{option_id,name,kind}]."`
	Channel   json.RawMessage       `json:"channel,omitempty" doc:"Stored, and returned unchanged."`
	Schema    json.RawMessage       `json:"schema,omitempty" doc:"human_contact: a form to fill in, a flat JSON Schema object as in ACP's elicitation."`
	URL       string                `json:"url,omitempty" doc:"human_contact: an address to open after the user agrees."`
}

type CreateApprovalResult struct {
	ApprovalID string `json:"approval_id"`
	CallID     string `json:"call_id"`
	Status     string `json:"status" doc:"pending, unless a rule or a mode has decided already."`
}

// Check refuses parameters without a run. approval.create checks the others.
func (p CreateApprovalParams) Check() error {
	if p.SessionID != "" {
		return nil
	}
	return protocol.NotEmpty("run_id", p.RunID)
}

// Native returns the parameters of approval.create.
func (p CreateApprovalParams) Native() protocol.CreateApprovalParams {
	return protocol.CreateApprovalParams{
		Turn: protocol.Ref(cmp.Or(p.RunID, p.SessionID)), Type: p.Type, ToolName: p.ToolName, ToolInput: p.ToolInput, ToolUseID: p.ToolUseID,
		Message: p.Message, Subject: p.Subject, Options: p.Options, Channel: p.Channel, Schema: p.Schema, URL: p.URL,
	}
}
