package domain

import (
	"encoding/json"
	"strings"
	"time"
)

// An Approval is a question to a human: may a tool run (function_call), or
// something else (human_contact).
type Approval struct {
	ID           string          `db:"id,key"` // a UUID
	Thread       int64           `db:"thread,fixed"`
	Run          int64           `db:"run,fixed"`
	Type         string          `db:"type,fixed"`     // function_call or human_contact
	CallID       string          `db:"call_id,fixed"`  // no other approval's: see ToolUseID and InsertApproval
	ParentID     string          `db:"parent_id,read"` // the tool call of the sub-agent that asks, as the call of the question has it, or ""
	Tool         string          `db:"tool,fixed"`
	Input        json.RawMessage `db:"input,fixed"` // what the tool gets: the agent's own JSON, in its spelling
	Title        string          `db:"title,fixed"`
	Subject      string          `db:"subject,fixed"`
	ToolKind     string          `db:"tool_kind,fixed"`
	Paths        []string        `db:"paths,fixed"`
	Diffs        []Diff          `db:"diffs,fixed"`    // what the tool would change
	Details      string          `db:"details,fixed"`  // what the agent says about the tool call beside its title and input: a text for people
	Plan         string          `db:"plan,fixed"`     // what the agent would do next, where it asks to leave its plan mode: a text for people
	Options      []Option        `db:"options,fixed"`  // the answers that are offered
	Channel      json.RawMessage `db:"channel,fixed"`  // a client's own, to be given back: any JSON
	Status       string          `db:"status"`         // pending, approved, denied, responded, expired, cancelled
	Stale        bool            `db:"stale"`          // the process that asked is dead
	Carried      bool            `db:"carried"`        // decided while stale: answers the same question when it is asked again
	Question     string          `db:"question,fixed"` // a hash of tool and input, by which it is known again
	Created      time.Time       `db:"created,fixed"`
	Deadline     time.Time       `db:"deadline,fixed"` // zero: none
	Decided      time.Time       `db:"decided"`        // zero: not yet
	DecidedBy    string          `db:"decided_by"`     // one of the DecidedBy constants, rule=… or mode=…
	Explanation  string          `db:"explanation"`    // what a rule or mode that decided is, in words
	Comment      string          `db:"comment"`
	Response     string          `db:"response"`
	Option       string          `db:"option"`
	UpdatedInput json.RawMessage `db:"updated_input"`      // what the tool gets instead, as a human has changed it; absent: Input
	InputFixed   bool            `db:"input_fixed,fixed"`  // whoever asks would not heed a changed input
	NameByKind   bool            `db:"name_by_kind,fixed"` // the agent has not named the tool: Tool is made of ToolKind
	Elicitation  Elicitation     `db:"elicitation,fixed"`  // of a human_contact that asks for more than words; zero: it does not
	Content      json.RawMessage `db:"content"`            // the values that a human has filled in; absent: none

	// What becomes of a human's answer that lets an agent go on.
	AwaitedBy  int64     `db:"awaited_by"`     // the run whose agent waits for it, or has it and is not known to have gone on from it; 0: none
	Taken      time.Time `db:"taken"`          // when the agent was known to have gone on from it; zero: it is not
	ReopenedAs string    `db:"reopened_as"`    // the ID of the question that asks the same again, since that never came; or ""
	Reopens    string    `db:"reopens,fixed"`  // the ID of the question that this one asks again, or ""
	Reopened   string    `db:"reopened,fixed"` // why, in words
}

// Values of Approval.Status.
const (
	ApprovalPending   = "pending"
	ApprovalApproved  = "approved"
	ApprovalDenied    = "denied"
	ApprovalResponded = "responded"
	ApprovalExpired   = "expired"
	ApprovalCancelled = "cancelled"
)

// Values of Approval.DecidedBy, beside what the policy says (package approval).
const (
	DecidedByUser      = "user"
	DecidedByTimeout   = "timeout"
	DecidedByEnd       = "end"       // of the run, or of whoever asked
	DecidedByOvertaken = "overtaken" // the conversation went on without it
	DecidedByChanged   = "changed"   // the agent changed the tool call: another approval asks again
)

// Values of Approval.Type.
const (
	FunctionCall = "function_call"
	HumanContact = "human_contact"
)

// ToolUseID is the agent's own id of the tool call, or ID. Agents number their
// calls in each session anew.
func (a Approval) ToolUseID() string { return strings.TrimSuffix(a.CallID, a.CallMark()) }

// IsPlan reports whether an agent asks to leave its plan mode. That is answered
// for the plan alone: no rule is made of it.
func (a Approval) IsPlan() bool { return a.Plan != "" || a.ToolKind == "switch_mode" }

// InputEditable reports whether a decision may change the tool's input.
func (a Approval) InputEditable() bool { return a.Type == FunctionCall && !a.InputFixed }

// TakesComment reports whether whoever asks is told what a person says beside the
// decision. Agents of the Agent Client Protocol are told the option alone, unless
// they say that they know more.
func (a Approval) TakesComment() bool { return !a.InputFixed }

// Answers say how it can be answered, where it is not about a tool.
func (a Approval) Answers() Answers { return AnswersOf(a.Type, a.Elicitation, a.Options) }

// CallMark is what is added to the id of a call that another approval has, so
// that CallID is unique.
func (a Approval) CallMark() string { return "." + a.ID[:min(len(a.ID), 8)] }

// A Rule is what a human has decided for all questions like one.
type Rule struct {
	ID      int64     `db:"id,auto"`
	Thread  int64     `db:"thread"` // 0: the whole project
	Effect  string    `db:"effect"` // allow or deny
	Tool    string    `db:"tool"`
	Command string    `db:"command"` // "" : any input
	Pattern bool      `db:"pattern"` // Command is a pattern, not one command
	Path    string    `db:"path"`    // a pattern of the files that it touches; "": any
	Created time.Time `db:"created"`
}

// A RulePreview is what a rule would hold for that is made of a question.
type RulePreview struct {
	Tool    string `json:"tool_name"`
	Covers  string `json:"covers"`            // one of the Covers constants
	Pattern string `json:"pattern,omitempty"` // of commands or of files, which can be given otherwise; "" where Covers is another
}

// Values of RulePreview.Covers.
const (
	CoversCommand = "command" // what the tool runs
	CoversFiles   = "files"   // that the tool touches
	CoversInput   = "input"   // the very input that is asked about
	CoversTool    = "tool"    // whatever the tool does
)

// An Elicitation is what an agent asks a person to fill in or to open, in the words
// of the Agent Client Protocol. The zero value is none.
type Elicitation struct {
	Mode   string          `json:"mode,omitempty"`   // one of the constants; "" is none
	Schema json.RawMessage `json:"schema,omitempty"` // of a form: what is asked for, the agent's own JSON
	URL    string          `json:"url,omitempty"`    // what is to be opened
	ID     string          `json:"id,omitempty"`     // the agent's own id of what is to be opened
}

// Values of Elicitation.Mode.
const (
	ElicitForm = "form"
	ElicitURL  = "url"
)
