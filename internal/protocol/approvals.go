package protocol

import (
	"encoding/json"
	"strconv"
	"time"

	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/server"
)

type ApprovalListParams struct {
	Turn Ref `json:"turn,omitempty" doc:"Only approvals of this turn; a session means its last turn. Absent: all."`
}

type ApprovalList struct {
	Approvals []*Approval `json:"approvals" doc:"The oldest first."`
}

type ApprovalParams struct {
	Approval string `json:"approval" doc:"The approval's id, or the id of its tool call."`
}

func (p ApprovalParams) Check() error { return NotEmpty("approval", p.Approval) }

type ApprovalResult struct {
	Approval Approval `json:"approval"`
}

// CreateApprovalParams are those of approval.create.
type CreateApprovalParams struct {
	Turn      Ref             `json:"turn" doc:"The turn that waits for the answer; a session means its last turn."`
	Type      ApprovalType    `json:"type,omitempty" doc:"Default: function_call."`
	ToolName  string          `json:"tool_name,omitempty" doc:"function_call: the tool."`
	ToolInput json.RawMessage `json:"tool_input,omitempty" doc:"function_call: the tool's input."`
	ToolUseID string          `json:"tool_use_id,omitempty" doc:"The caller's id of the tool call."`
	Message   string          `json:"message,omitempty" doc:"human_contact: the question."`
	Subject   string          `json:"subject,omitempty" doc:"human_contact: the topic, in a few words."`
	Options   json.RawMessage `json:"options,omitempty" doc:"Answers to choose from: [{option_id,name,kind}]."`
	Channel   json.RawMessage `json:"channel,omitempty" doc:"Stored, and returned unchanged."`
	Schema    json.RawMessage `json:"schema,omitempty" doc:"human_contact: a form to fill in, a flat JSON Schema object as in elicitation of the Agent Client Protocol."`
	URL       string          `json:"url,omitempty" doc:"human_contact: an address to open after the user agrees."`
}

// Elicitation returns the form or the address of the question, or the zero value.
func (p CreateApprovalParams) Elicitation() domain.Elicitation {
	switch schema := OrAbsent(p.Schema); {
	case schema != nil:
		return domain.Elicitation{Mode: domain.ElicitForm, Schema: schema}
	case p.URL != "":
		return domain.Elicitation{Mode: domain.ElicitURL, URL: p.URL}
	}
	return domain.Elicitation{}
}

func (p CreateApprovalParams) Check() error {
	if err := NotEmpty("turn", string(p.Turn)); err != nil {
		return err
	}
	switch {
	case p.Type == HumanContact:
		if err := NotEmpty("message", p.Message); err != nil {
			return err
		}
	case p.Elicitation().Mode != "":
		return server.InvalidParam(server.ParamError{
			Param: "type", Expected: "human_contact, for a form or an address", Received: "function_call",
		})
	default:
		if err := NotEmpty("tool_name", p.ToolName); err != nil {
			return err
		}
	}
	if _, err := ReadOptions(p.Options); err != nil {
		return server.InvalidParam(server.ParamError{Param: "options", Expected: "an array of {option_id,name,kind}", Received: "something else"})
	}
	return nil
}

// A Verdict is the answer to an approval.
type Verdict string

// Values of [DecisionParams.Decision].
const (
	Approve Verdict = "approve"
	Deny    Verdict = "deny"
	Respond Verdict = "respond"
	Cancel  Verdict = "cancel"
)

// Accepted implements schema.Enum.
func (Verdict) Accepted() []string { return []string{"approve", "deny", "respond", "cancel"} }

// A DecisionScope is how far a decision reaches: this question alone, or as a rule.
type DecisionScope string

// Accepted implements schema.Enum.
func (DecisionScope) Accepted() []string { return domain.Scopes() }

// DecisionParams answer an approval.
type DecisionParams struct {
	ApprovalID   string          `json:"approval" doc:"The approval's id, or the id of its tool call."`
	Type         ApprovalType    `json:"type,omitempty" doc:"The expected type. Absent: any."`
	Decision     Verdict         `json:"decision" doc:"function_call: approve or deny. human_contact: respond, or deny if an agent offers options. An approval with a mode: respond, deny (decline) or cancel."`
	Comment      string          `json:"comment,omitempty" doc:"The reason, or the response. Required for deny, and for respond unless option is the response."`
	UpdatedInput json.RawMessage `json:"updated_input,omitempty" doc:"The tool runs with this input instead. Only if the approval is input_editable; otherwise deny, and write into the comment what to run."`
	Scope        DecisionScope   `json:"scope,omitempty" doc:"once, or where the decision becomes a rule. The rule also decides pending approvals there."`
	Option       string          `json:"option,omitempty" doc:"The option_id or name of one of the approval's options. It must agree with the decision."`
	Content      json.RawMessage `json:"content,omitempty" doc:"The values of a form: an object that fits the approval's schema. An error names the field, such as content.port."`
	Pattern      string          `json:"pattern,omitempty" doc:"With a scope: the rule's pattern, in place of that in rule_preview. Commands: as in the configuration. Files: * does not match a slash, and src/** matches everything below src. The pattern must match this call."`
	Client       string          `json:"client,omitempty" doc:"The deciding client's name for people, such as VS Code. Events and the items of the session show it as decided_in. At most 100 bytes."`
	Fingerprint  string          `json:"fingerprint,omitempty" doc:"The fingerprint of the approval that the user saw. If the approval has another one, nothing is decided (changed)."`
	Tell         bool            `json:"tell,omitempty" doc:"Deliver the comment to the agent. If the agent does not receive comments with decisions, the comment is the next prompt of its session."`
}

type DecisionResult struct {
	Success bool           `json:"success" doc:"false: the approval was decided before; see error and status."`
	Error   string         `json:"error,omitempty" doc:"Why the decision has no effect."`
	Status  ApprovalStatus `json:"status,omitempty" doc:"The approval's current status."`

	ToldTurn string `json:"told_turn,omitempty" doc:"The turn whose prompt delivers the comment, if tell created one."`

	Told *domain.Turn `json:"-"` // for dialects
}

// Values of [Approval.Type].
const (
	FunctionCall ApprovalType = "function_call"
	HumanContact ApprovalType = "human_contact"
)

// An ApprovalType is a permission request or another question.
type ApprovalType string

// Accepted implements schema.Enum.
func (ApprovalType) Accepted() []string { return []string{"function_call", "human_contact"} }

// An ApprovalStatus is the state of an approval.
type ApprovalStatus string

// Accepted implements schema.Enum.
func (ApprovalStatus) Accepted() []string { return domain.ApprovalStatuses() }

// Words returns the status for people.
func (s ApprovalStatus) Words() string { return domain.StatusWords(string(s)) }

// An Approval is a question to a person.
type Approval struct {
	ApprovalID   string          `json:"approval"`
	CallID       string          `json:"call_id" doc:"A unique id: tool_use_id, or an id made from it if another approval already has it."`
	Turn         string          `json:"turn" doc:"The turn that asks, such as 12.3."`
	Session      int64           `json:"session" doc:"The session's number in the project."`
	TurnUUID     string          `json:"turn_uuid"`
	SessionUUID  string          `json:"session_uuid"`
	Agent        string          `json:"agent,omitempty"`
	Status       ApprovalStatus  `json:"status"`
	Stale        bool            `json:"stale" doc:"The process that asked is gone. Approving resumes the turn."`
	Reopens      string          `json:"reopens,omitempty" doc:"The approval that this one repeats: it was answered, but the agent is not known to have acted on the answer."`
	Reopened     string          `json:"reopened,omitempty" doc:"Why Duet asks again, for people; show it."`
	ReopenedAs   string          `json:"reopened_as,omitempty" doc:"The approval that repeats this one."`
	TakenAt      *time.Time      `json:"taken_at,omitempty" doc:"When the agent was seen to act on the answer."`
	CreatedAt    time.Time       `json:"created_at"`
	Deadline     *time.Time      `json:"deadline,omitempty" doc:"When the approval expires."`
	Fingerprint  string          `json:"fingerprint" doc:"Identifies what a person decides on: the tool, its whole input and what Duet shows of it. A decision may name it."`
	ToolName     string          `json:"tool_name"`
	ToolInput    json.RawMessage `json:"tool_input"`
	Editable     bool            `json:"input_editable" doc:"Whether a decision may have updated_input. Most agents would run the tool with their own input anyway."`
	TextMember   string          `json:"input_text_member,omitempty" doc:"The member of tool_input that has the text that the tool writes or runs: a file, a part of a file, or a command. An editor shows that text, and updated_input has the changed one. Absent: the input is edited as JSON."`
	Ambiguity    string          `json:"input_ambiguity,omitempty" doc:"Why programs may read tool_input differently, such as a duplicate member; the title says so too. No rule allows such a call, and a user can approve it only once."`
	ToolUseID    string          `json:"tool_use_id,omitempty" doc:"The agent's id of the waiting tool call, as in events and the items of a session. Agents reuse ids in other sessions."`
	ToolKind     string          `json:"tool_kind,omitempty" doc:"read, edit, delete, move, search, execute, think, fetch or other."`
	Title        string          `json:"title" doc:"The question, for people."`
	Subject      string          `json:"subject,omitempty"`
	Options      []domain.Option `json:"options,omitzero" doc:"The agent's answers to choose from: [{option_id,name,kind}]."`
	OptionsOnly  bool            `json:"options_only,omitempty" doc:"human_contact: only one of the options is an answer, because the agent can receive nothing else. Other text is refused."`
	Declinable   bool            `json:"declinable,omitempty" doc:"human_contact: it can also be denied, which means that the user chose, filled in or opened nothing."`
	Paths        []string        `json:"paths,omitempty" doc:"The files that the call touches."`
	Diff         string          `json:"diff,omitempty" doc:"The changes that the tool would make, as a unified diff."`
	Details      string          `json:"details,omitempty" doc:"The agent's text about the tool call, in addition to title and input, for people. If an agent sends no input, nothing else is known about the call."`
	Plan         string          `json:"plan,omitempty" doc:"The agent's plan, if it asks to leave its plan mode; mostly Markdown. The answer makes no rule."`
	Rules        RulePreviews    `json:"rule_preview,omitempty" doc:"The rule that a decision with a scope would make, by the scopes of approval.decide other than once. Absent: no rule is possible. This is Duet's rule; the name of an option of kind allow_always describes what the agent itself remembers."`
	TakesComment bool            `json:"takes_comment" doc:"Whether the agent receives the comment with the decision. If not, a decision with tell sends it as the next prompt."`
	Channel      json.RawMessage `json:"channel,omitempty"`
	RespondedAt  *time.Time      `json:"responded_at,omitempty"`
	DecidedBy    string          `json:"decided_by,omitempty" doc:"user, rule=…, mode=…, timeout, end, overtaken (the session continued without it), or changed (the agent changed the tool call, and another approval asks again)."`
	Explanation  string          `json:"explanation,omitempty" doc:"Describes the rule or mode that decided. For a rule of a file: which rule, and its place."`
	Comment      string          `json:"comment,omitempty"`
	Response     string          `json:"response,omitempty"`
	Option       string          `json:"option,omitempty" doc:"The chosen option."`
	UpdatedInput json.RawMessage `json:"updated_input,omitempty" doc:"The input as the user changed it."`
	Truncated    bool            `json:"truncated,omitempty" doc:"Parts of the input or the texts were left out to fit into a message."`
	*Elicitation
	Content json.RawMessage `json:"content,omitempty" doc:"The values of the form as the user filled them in."`

	Type ApprovalType `json:"type"`

	// For dialects.
	Of    domain.TurnInSession `json:"-"`
	Asked domain.Approval      `json:"-"`
}

func (a *Approval) Texts() []*string {
	return []*string{&a.Diff, &a.Plan, &a.Details, &a.Explanation, &a.Subject, &a.Comment, &a.Response}
}

type RuleList struct {
	Rules []*Rule `json:"rules"`
}

// A Rule is a decision for all similar calls.
type Rule struct {
	RuleID      int64     `json:"rule_id"`
	Effect      string    `json:"effect" doc:"allow or deny."`
	ToolName    string    `json:"tool_name"`
	Command     string    `json:"command,omitempty" doc:"Only this command. Absent: any input."`
	Pattern     bool      `json:"pattern,omitempty" doc:"The command is a pattern, as in the configuration."`
	Path        string    `json:"path,omitempty" doc:"Only these files: a pattern in which * does not match a slash."`
	SameInput   bool      `json:"same_input,omitempty" doc:"Only this exact input."`
	Scope       string    `json:"scope" doc:"The scope of the decision that made it, as in approval.decide."`
	Session     int64     `json:"session,omitempty" doc:"The session, if the rule is for one alone."`
	SessionUUID string    `json:"session_uuid,omitempty"`
	Title       string    `json:"title,omitempty" doc:"The session's title."`
	CreatedAt   time.Time `json:"created_at"`
}

func (r *Rule) Texts() []*string { return []*string{&r.Command, &r.Path, &r.Title} }

type DeleteRuleParams struct {
	RuleID int64 `json:"rule_id" doc:"The rule's id from rule.list."`
}

func (p DeleteRuleParams) Check() error {
	if p.RuleID > 0 {
		return nil
	}
	return server.InvalidParam(server.ParamError{
		Param: "rule_id", Expected: "the id of a rule, as rule.list lists it", Received: strconv.FormatInt(p.RuleID, 10),
	})
}

type DeleteRuleResult struct {
	Success bool `json:"success" doc:"true"`
}

// AskedIn selects the session of a question of a program.
type AskedIn struct {
	Session    string `json:"session,omitempty" doc:"An active session, such as 12: the question belongs to it, and the session waits too. Any other name selects a session of questions, which is created if necessary. Default: the project's."`
	WorkingDir string `json:"working_dir,omitempty" doc:"The directory for relative paths and rules, if the question does not belong to a session. Default: the project's root."`
	Keep       bool   `json:"keep,omitempty" doc:"Keep the question open when the connection or the daemon ends. The same question in the same session then gets the answer, for an hour. No effect on a question of an agent's session."`

	Named bool `json:"-"` // of a dialect: Session is a name that the caller chose, even if it looks like a number
}

// AskParams are those of approval.ask.
type AskParams struct {
	Message string          `json:"message" doc:"The question."`
	Subject string          `json:"subject,omitempty" doc:"The topic, in a few words."`
	Options json.RawMessage `json:"options,omitempty" doc:"Answers to choose from: strings, or {option_id,name,kind}. Absent: any text is an answer."`
	AskedIn
}

// An Answer is the result of approval.ask.
type Answer struct {
	Response   string `json:"response" doc:"The answer: the user's text, or the name of the option."`
	Option     string `json:"option,omitempty" doc:"The option_id of the chosen option."`
	ApprovalID string `json:"approval_id" doc:"The approval, for approval.get."`
}

// RequestParams are those of approval.request.
type RequestParams struct {
	ToolName  string          `json:"tool_name" doc:"The tool."`
	ToolInput json.RawMessage `json:"tool_input,omitempty" doc:"The tool's input."`
	ToolUseID string          `json:"tool_use_id,omitempty" doc:"The caller's id of the tool call."`
	AskedIn
}

func (p RequestParams) Check() error { return NotEmpty("tool_name", p.ToolName) }

// A Permission is the result of approval.request: the tool may run.
type Permission struct {
	Approved     bool            `json:"approved" doc:"true"`
	Reason       string          `json:"reason,omitempty" doc:"user_approved, or the rule=… or mode=… that decided."`
	Comment      string          `json:"comment,omitempty" doc:"The user's comment."`
	UpdatedInput json.RawMessage `json:"updated_input,omitempty" doc:"The input that the tool must use instead."`
	ApprovalID   string          `json:"approval_id,omitempty" doc:"The approval, for approval.get, if a person was asked."`
}
