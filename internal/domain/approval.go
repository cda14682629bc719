package domain

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strings"
	"time"
)

// An Approval is a question to a person: may a tool run (function_call), or another question
// (human_contact).
type Approval struct {
	ID           string          `db:"id,key"` // a UUID
	Session      int64           `db:"session,fixed"`
	Turn         int64           `db:"turn,fixed"`
	Type         string          `db:"type,fixed"`     // function_call or human_contact
	CallID       string          `db:"call_id,fixed"`  // unique; see ToolUseID and store.Tx.InsertApproval
	ParentID     string          `db:"parent_id,read"` // the tool call of the asking sub-agent, or ""
	Tool         string          `db:"tool,fixed"`
	Input        json.RawMessage `db:"input,fixed"` // the tool's input, as the agent sent it
	Title        string          `db:"title,fixed"`
	Subject      string          `db:"subject,fixed"`
	ToolKind     string          `db:"tool_kind,fixed"`
	Paths        []string        `db:"paths,fixed"`
	Diffs        []Diff          `db:"diffs,fixed"`    // the tool's changes
	Details      string          `db:"details,fixed"`  // the agent's text about the tool call, for people
	Plan         string          `db:"plan,fixed"`     // the plan, if the agent asks to leave its plan mode; for people
	Options      []Option        `db:"options,fixed"`  // offered answers
	Channel      json.RawMessage `db:"channel,fixed"`  // the client's own JSON, returned unchanged
	Status       string          `db:"status"`         // pending, approved, denied, responded, expired, cancelled
	Stale        bool            `db:"stale"`          // the asking process is dead
	Carried      bool            `db:"carried"`        // decided while stale; answers the same question when the agent repeats it
	Question     string          `db:"question,fixed"` // a hash of tool and input that identifies a repeated question; "": see IsProposal
	Created      time.Time       `db:"created,fixed"`
	Deadline     time.Time       `db:"deadline,fixed"` // zero: none
	Decided      time.Time       `db:"decided"`        // zero: not yet
	DecidedBy    string          `db:"decided_by"`     // one of the DecidedBy constants, rule=… or mode=…
	Explanation  string          `db:"explanation"`    // describes the deciding rule or mode
	Comment      string          `db:"comment"`
	Response     string          `db:"response"`
	Option       string          `db:"option"`
	UpdatedInput json.RawMessage `db:"updated_input"`      // the input as a person changed it; absent: Input
	InputFixed   bool            `db:"input_fixed,fixed"`  // a changed input would have no effect
	NameByKind   bool            `db:"name_by_kind,fixed"` // the agent did not name the tool; Tool is made of ToolKind
	Elicitation  Elicitation     `db:"elicitation,fixed"`  // the form or address of a human_contact, or zero
	Content      json.RawMessage `db:"content"`            // the values of the form; absent: none

	// The way of a person's answer to the agent.
	AwaitedBy  int64     `db:"awaited_by"`     // the turn whose agent waits for it, or has not been seen to act on it; 0: none
	Taken      time.Time `db:"taken"`          // when the agent was seen to act on it; zero: not yet
	ReopenedAs string    `db:"reopened_as"`    // the approval that repeats this one because the agent never acted on it, or ""
	Reopens    string    `db:"reopens,fixed"`  // the approval that this one repeats, or ""
	Reopened   string    `db:"reopened,fixed"` // the reason, for people
}

// Fingerprint identifies what a person decides on: the call, with its whole input and all that is shown of it. The question
// that an agent asks again after it changed a call has another one.
func (a Approval) Fingerprint() string {
	shown, _ := json.Marshal([]any{ // texts and JSON that was read before: encoding cannot fail
		a.ID, a.Type, a.Tool, a.Input, a.Title, a.Subject, a.Paths, a.Diffs, a.Details, a.Plan, a.Options, a.Elicitation,
	})
	sum := sha256.Sum256(shown)
	return hex.EncodeToString(sum[:16])
}

// Scopes of a decision.
const (
	ScopeOnce    = "once"
	ScopeSession = "session" // creates a rule for the session
	ScopeProject = "project" // creates a rule for the project
)

// Scopes lists the scopes of a decision.
func Scopes() []string { return append([]string{ScopeOnce}, RuleScopes()...) }

// RuleScopes lists the scopes that create a rule.
func RuleScopes() []string { return []string{ScopeSession, ScopeProject} }

// ScopeText describes a scope that creates a rule, as the end of a sentence.
func ScopeText(scope string) string { return "in this " + scope }

// Values of Approval.Status.
const (
	ApprovalPending   = "pending"
	ApprovalApproved  = "approved"
	ApprovalDenied    = "denied"
	ApprovalResponded = "responded"
	ApprovalExpired   = "expired"
	ApprovalCancelled = "cancelled"
)

// ApprovalStatuses lists the values of Approval.Status.
func ApprovalStatuses() []string {
	return []string{ApprovalPending, ApprovalApproved, ApprovalDenied, ApprovalResponded, ApprovalExpired, ApprovalCancelled}
}

// StatusWords returns a value of Approval.Status for people.
func StatusWords(status string) string {
	switch status {
	case ApprovalPending:
		return "open"
	case ApprovalApproved:
		return "allowed"
	case ApprovalResponded:
		return "answered"
	case ApprovalCancelled:
		return "withdrawn"
	}
	return status
}

// An Answer is a way to answer a question about a tool. Each client shows the same keys and words.
type Answer struct {
	Key     string // on a keyboard
	Name    string
	Words   string // on a button, in a menu, or after its key
	Meaning string // a sentence
}

// Names of answers to questions about tools.
const (
	AnswerAllow   = "allow"
	AnswerDeny    = "deny"
	AnswerTell    = "tell"
	AnswerSession = ScopeSession
	AnswerProject = ScopeProject
	AnswerEdit    = "edit"
	AnswerKeys    = "keys"
)

// ToolAnswers lists the ways to answer a question about a tool, in the order in which clients show them.
func ToolAnswers() []Answer {
	return []Answer{
		{"y", AnswerAllow, "Allow", "The tool runs this once."},
		{"n", AnswerDeny, "Deny", "The tool does not run."},
		{"t", AnswerTell, "Deny and say why", "The agent gets your reason."},
		{"s", AnswerSession, "Always in this session", "Such calls run without a question in this session."},
		{"p", AnswerProject, "Always in this project", "Such calls run without a question in this project."},
		{"e", AnswerEdit, "Edit", "You change what the tool gets, and then allow it."},
		{"?", AnswerKeys, "Keys", "Shows what the keys do."},
	}
}

// AnswerNamed returns the answer with a name.
func AnswerNamed(name string) Answer {
	list := ToolAnswers()
	return list[slices.IndexFunc(list, func(a Answer) bool { return a.Name == name })]
}

// Values of Approval.DecidedBy, in addition to rule=… and mode=… (package approval).
const (
	DecidedByUser      = "user"
	DecidedByTimeout   = "timeout"
	DecidedByEnd       = "end"       // the turn or the asking client ended
	DecidedByOvertaken = "overtaken" // the session continued without it
	DecidedByChanged   = "changed"   // the agent changed the tool call, and another approval asks again
)

// Values of Approval.Type.
const (
	FunctionCall = "function_call"
	HumanContact = "human_contact"
)

// ToolUseID is the agent's own id of the tool call, or ID. Agents reuse ids in other sessions.
func (a Approval) ToolUseID() string { return strings.TrimSuffix(a.CallID, a.CallMark()) }

// IsPlan reports whether an agent asks to leave its plan mode. The answer makes no rule.
func (a Approval) IsPlan() bool { return a.Plan != "" || a.ToolKind == "switch_mode" }

// IsProposal reports whether the program itself asks, for a trigger. Rules do not answer its
// question, so the answer makes none. All questions of agents have a Question.
func (a Approval) IsProposal() bool { return a.Type == FunctionCall && a.Question == "" }

// InputEditable reports whether a decision may change the tool's input.
func (a Approval) InputEditable() bool { return a.Type == FunctionCall && !a.InputFixed }

// TakesComment reports whether the agent receives the comment of a decision. Agents of the Agent
// Client Protocol receive the option alone, unless they announce more.
func (a Approval) TakesComment() bool { return !a.InputFixed }

// Answers are the possible answers if the question is not about a tool.
func (a Approval) Answers() Answers { return AnswersOf(a.Type, a.Elicitation, a.Options) }

// CallMark is appended to the id of a call that another approval has, so that CallID is unique.
func (a Approval) CallMark() string { return "." + a.ID[:min(len(a.ID), 8)] }

// A Rule is a decision for all similar questions.
type Rule struct {
	ID      int64     `db:"id,auto"`
	Session int64     `db:"session"` // 0: the whole project
	Effect  string    `db:"effect"`  // allow or deny
	Tool    string    `db:"tool"`
	Command string    `db:"command"` // "" : any input
	Pattern bool      `db:"pattern"` // Command is a pattern, not one command
	Path    string    `db:"path"`    // a pattern of its files; "": any
	Created time.Time `db:"created"`
}

// Scope is the scope of the decision that created the rule.
func (r Rule) Scope() string {
	if r.Session == 0 {
		return ScopeProject
	}
	return ScopeSession
}

// A RulePreview describes the rule that a decision with a scope would make.
type RulePreview struct {
	Tool    string `json:"tool_name"`
	Covers  string `json:"covers"`            // one of the Covers constants
	Pattern string `json:"pattern,omitempty"` // of commands or files, which the decision may replace; else ""
}

// Values of RulePreview.Covers.
const (
	CoversCommand = "command" // the command
	CoversFiles   = "files"   // the files
	CoversInput   = "input"   // this input only
	CoversTool    = "tool"    // every use of the tool
)

// An Elicitation is a form to fill in or an address to open, as of the Agent Client Protocol. The
// zero value is none.
type Elicitation struct {
	Mode   string          `json:"mode,omitempty"`   // one of the constants; "" is none
	Schema json.RawMessage `json:"schema,omitempty"` // of a form, as the agent sent it
	URL    string          `json:"url,omitempty"`    // to be opened
	ID     string          `json:"id,omitempty"`     // the agent's id
}

// Values of Elicitation.Mode.
const (
	ElicitForm = "form"
	ElicitURL  = "url"
)
