package protocol

import (
	"encoding/json"
	"strconv"
	"time"

	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/server"
)

type CreateApprovalParams struct {
	RunID     string          `json:"run_id,omitempty" doc:"The run that waits; every id of it will do. This or session_id is needed."`
	SessionID string          `json:"session_id,omitempty" doc:"Another name for run_id."`
	Type      ApprovalType    `json:"type,omitempty" doc:"Absent: function_call."`
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

type CreateApprovalResult struct {
	ApprovalID string `json:"approval_id"`
	CallID     string `json:"call_id"`
	Status     string `json:"status" doc:"pending, unless a rule or a mode has answered already."`
}

type FetchApprovalsParams struct {
	SessionID string `json:"session_id,omitempty" doc:"Only those of this session; every id of the run will do."`
	RunID     string `json:"run_id,omitempty" doc:"Another name for session_id."`
}

type ApprovalList struct {
	Approvals []*Approval `json:"approvals"`
}

// ApprovalIDs name one approval.
type ApprovalIDs struct {
	CallID     string `json:"call_id,omitempty" doc:"The call_id of the approval, or its id. This or approval_id is needed."`
	ApprovalID string `json:"approval_id,omitempty" doc:"The approval."`
}

func (p ApprovalIDs) ID() string {
	if p.ApprovalID != "" {
		return p.ApprovalID
	}
	return p.CallID
}

func (p ApprovalIDs) Check() error {
	if p.ApprovalID != "" {
		return nil
	}
	return NotEmpty("call_id", p.CallID)
}

type ApprovalResult struct {
	Approval Approval `json:"approval"`
}

// A Verdict is how an approval is answered.
type Verdict string

// IDs returns the names of the approval.
func (p DecisionParams) IDs() ApprovalIDs { return ApprovalIDs{p.ApprovalID, p.CallID} }

// Values of [DecisionParams.Decision].
const (
	Approve Verdict = "approve"
	Deny    Verdict = "deny"
	Respond Verdict = "respond"
	Cancel  Verdict = "cancel"
)

// Accepted implements schema.Enum.
func (Verdict) Accepted() []string { return []string{"approve", "deny", "respond", "cancel"} }

// A DecisionScope is the range of a decision: this question, the session or the project.
type DecisionScope string

// Accepted implements schema.Enum.
func (DecisionScope) Accepted() []string { return []string{"once", "session", "project"} }

// DecisionParams answer an approval, which they name as [ApprovalIDs] do.
type DecisionParams struct {
	CallID       string          `json:"call_id,omitempty" doc:"The call_id of the approval, or its id. This or approval_id is needed."`
	ApprovalID   string          `json:"approval_id,omitempty" doc:"The approval."`
	Type         ApprovalType    `json:"type,omitempty" doc:"What it is thought to be; absent: whatever it is."`
	Decision     Verdict         `json:"decision" doc:"A function_call is approved or denied, a human_contact is responded to; one in which an agent offers options can be denied too. One with a mode is responded to, denied (declined), or cancelled."`
	Comment      string          `json:"comment,omitempty" doc:"Why, or the response. Needed to deny and to respond (unless option is the response)."`
	UpdatedInput json.RawMessage `json:"updated_input,omitempty" doc:"The tool runs with this input instead. Only where the approval is input_editable; else deny, and say in the comment what to run."`
	Scope        DecisionScope   `json:"scope,omitempty" doc:"once, or a rule for the session or the project, which answers what waits there too."`
	Option       string          `json:"option,omitempty" doc:"One of the approval's options: its option_id or name. It has to say what the decision says."`
	Content      json.RawMessage `json:"content,omitempty" doc:"The values of a form, an object that fits the approval's schema. An error names the field, such as content.port."`
	Pattern      string          `json:"pattern,omitempty" doc:"With a scope: of the commands or files that the rule is to hold for, instead of what rule_preview says. Of commands as in the configuration; of files * stands for no slash, and src/** for all below src. It has to fit what is asked."`
	Tell         bool            `json:"tell,omitempty" doc:"The comment is to reach the agent: where it takes none with the decision, as the next prompt of its conversation."`
}

type DecisionResult struct {
	Success bool   `json:"success"`
	Error   string `json:"error,omitempty" doc:"Why not."`
	Status  string `json:"status,omitempty" doc:"The approval's status now."`

	ToldSessionID string `json:"told_session_id,omitempty" doc:"The session whose prompt gives the comment to the agent, where tell made one."`
	ToldTaskID    string `json:"told_task_id,omitempty" doc:"The same as a task."`
}

// An ApprovalType is a permission for a tool, or another question.
type ApprovalType string

// Accepted implements schema.Enum.
func (ApprovalType) Accepted() []string { return []string{"function_call", "human_contact"} }

// An Approval is a question to a human in both of HumanLayer's shapes: flat, as
// today's clients have it, and by type, as its specification does.
type Approval struct {
	ID           string          `json:"id"`
	ApprovalID   string          `json:"approval_id" doc:"The same as id."`
	CallID       string          `json:"call_id" doc:"The same as tool_use_id, or where another approval has that already, made of it: no two have the same."`
	RunID        string          `json:"run_id"`
	SessionID    string          `json:"session_id"`
	TaskID       string          `json:"task_id,omitempty"`
	ThreadID     string          `json:"thread_id,omitempty"`
	Agent        string          `json:"agent,omitempty"`
	Status       string          `json:"status" doc:"pending, approved, denied, responded, expired or cancelled."`
	Stale        bool            `json:"stale" doc:"The process that asked is gone: approving resumes the session."`
	Reopens      string          `json:"reopens,omitempty" doc:"The approval that this one asks again: it was answered, and the agent is not known to have acted on that."`
	Reopened     string          `json:"reopened,omitempty" doc:"Why it is asked again, in words for people; show it."`
	ReopenedAs   string          `json:"reopened_as,omitempty" doc:"The approval that asks this one again."`
	TakenAt      *time.Time      `json:"taken_at,omitempty" doc:"When the agent was seen to go on from the answer."`
	CreatedAt    time.Time       `json:"created_at"`
	Deadline     *time.Time      `json:"deadline,omitempty" doc:"When it expires."`
	ToolName     string          `json:"tool_name"`
	ToolInput    json.RawMessage `json:"tool_input"`
	Editable     bool            `json:"input_editable" doc:"Whether a decision may have an updated_input: most agents would run the tool with their own input all the same."`
	Ambiguity    string          `json:"input_ambiguity,omitempty" doc:"Why programs may read tool_input differently, such as a member that stands there twice; the title says so too. No rule allows such a call, and it can be approved once alone."`
	ToolUseID    string          `json:"tool_use_id,omitempty" doc:"The agent's own id of the tool call that waits, as in events and conversations; agents use one again in another session."`
	ToolKind     string          `json:"tool_kind,omitempty" doc:"read, edit, delete, move, search, execute, think, fetch or other."`
	Title        string          `json:"title" doc:"What is asked, in words."`
	Subject      string          `json:"subject,omitempty"`
	Options      []domain.Option `json:"options,omitzero" doc:"The answers that the agent offers: [{option_id,name,kind}]."`
	OptionsOnly  bool            `json:"options_only,omitempty" doc:"Of a human_contact: it is answered with one of its options alone, since whoever asks can be told nothing else. Other words are refused."`
	Declinable   bool            `json:"declinable,omitempty" doc:"Of a human_contact: it can be denied too, which says that nothing was chosen, filled in or opened."`
	Paths        []string        `json:"paths,omitempty" doc:"The files that it touches."`
	Diff         string          `json:"diff,omitempty" doc:"What it would change, as a unified diff."`
	Details      string          `json:"details,omitempty" doc:"What the agent says about the tool call beside its title and input: a text for people. Of an agent that sends no input it is all that is known of the call."`
	Plan         string          `json:"plan,omitempty" doc:"What the agent would do next, where it asks to leave its plan mode: a text, mostly Markdown. No rule is made of the answer."`
	Rules        RulePreviews    `json:"rule_preview,omitempty" doc:"What a decision with a scope would hold for, by scope: session and project. Absent: no rule can be made of it. It is Duet's rule; what an option of the kind allow_always makes the agent remember is the agent's, and its name says it."`
	TakesComment bool            `json:"takes_comment" doc:"Whether the agent is told the comment with the decision. Else a decision with tell gives it as the next prompt."`
	Channel      json.RawMessage `json:"channel,omitempty"`
	RespondedAt  *time.Time      `json:"responded_at,omitempty"`
	DecidedBy    string          `json:"decided_by,omitempty" doc:"user, rule=…, mode=…, timeout, end, overtaken (the conversation went on without it), or changed (the agent changed the tool call, and another approval asks again)."`
	Explanation  string          `json:"explanation,omitempty" doc:"What the rule or mode that decided is, in words: of a rule of a file, which one and where it stands."`
	Comment      string          `json:"comment,omitempty"`
	Response     string          `json:"response,omitempty"`
	Option       string          `json:"option,omitempty" doc:"The option that was chosen."`
	UpdatedInput json.RawMessage `json:"updated_input,omitempty" doc:"The input as a human changed it."`
	Truncated    bool            `json:"truncated,omitempty" doc:"Parts of the input were left out, to fit into a message."`
	*Elicitation
	Content json.RawMessage `json:"content,omitempty" doc:"The values of the form as a human filled them in."`

	Type         ApprovalType         `json:"type"`
	FunctionCall *FunctionCallRequest `json:"function_call,omitempty"`
	HumanContact *HumanContactRequest `json:"human_contact,omitempty"`
}

func (a *Approval) Texts() []*string {
	return []*string{&a.Diff, &a.Plan, &a.Details, &a.Explanation, &a.Subject, &a.Comment, &a.Response}
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

type RuleList struct {
	Rules []*Rule `json:"rules"`
}

// A Rule is a decision that holds for all questions like one.
type Rule struct {
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

func (r *Rule) Texts() []*string { return []*string{&r.Command, &r.Path, &r.Title} }

type DeleteRuleParams struct {
	RuleID int64 `json:"rule_id" doc:"The rule, as getRules lists it."`
}

func (p DeleteRuleParams) Check() error {
	if p.RuleID > 0 {
		return nil
	}
	return server.InvalidParam(server.ParamError{Param: "rule_id", Expected: "the id of a rule, as getRules lists it", Received: strconv.FormatInt(p.RuleID, 10)})
}

type DeleteRuleResult struct {
	Success bool `json:"success" doc:"true"`
}
