package domain

import (
	"encoding/json"
	"strings"
	"time"
)

// An Approval is a question to a human: may a tool run (function_call), or
// something else (human_contact).
type Approval struct {
	ID           string // a UUID
	Thread       int64
	Run          int64
	Type         string // function_call or human_contact
	CallID       string // no other approval's: see ToolUseID and InsertApproval
	ParentID     string // the tool call of the sub-agent that asks, as the call of the question has it, or ""
	Tool         string
	Input        json.RawMessage // what the tool gets: the agent's own JSON, in its spelling
	Title        string
	Subject      string
	ToolKind     string
	Paths        []string
	Diffs        []Diff          // what the tool would change
	Details      string          // what the agent says about the tool call beside its title and input: a text for people
	Plan         string          // what the agent would do next, where it asks to leave its plan mode: a text for people
	Options      []Option        // the answers that are offered
	Channel      json.RawMessage // a client's own, to be given back: any JSON
	Status       string          // pending, approved, denied, responded, expired, cancelled
	Stale        bool            // the process that asked is dead
	Carried      bool            // decided while stale: answers the same question when it is asked again
	Question     string          // a hash of tool and input, by which it is known again
	Created      time.Time
	Deadline     time.Time // zero: none
	Decided      time.Time // zero: not yet
	DecidedBy    string    // one of the DecidedBy constants, rule=… or mode=…
	Explanation  string    // what a rule or mode that decided is, in words
	Comment      string
	Response     string
	Option       string
	UpdatedInput json.RawMessage // what the tool gets instead, as a human has changed it; absent: Input
	InputFixed   bool            // whoever asks would not heed a changed input
	NameByKind   bool            // the agent has not named the tool: Tool is made of ToolKind
	Elicitation  Elicitation     // of a human_contact that asks for more than words; zero: it does not
	Content      json.RawMessage // the values that a human has filled in; absent: none

	// What becomes of a human's answer that lets an agent go on.
	AwaitedBy  int64     // the run whose agent waits for it, or has it and is not known to have gone on from it; 0: none
	Taken      time.Time // when the agent was known to have gone on from it; zero: it is not
	ReopenedAs string    // the ID of the question that asks the same again, since that never came; or ""
	Reopens    string    // the ID of the question that this one asks again, or ""
	Reopened   string    // why, in words
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

// Values of Approval.DecidedBy, beside what the policy says (package policy).
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
	ID      int64
	Thread  int64  // 0: the whole project
	Effect  string // allow or deny
	Tool    string
	Command string // "" : any input
	Pattern bool   // Command is a pattern, not one command
	Path    string // a pattern of the files that it touches; "": any
	Created time.Time
}

// A RulePreview is what a rule would hold for that is made of a question.
type RulePreview struct {
	Tool    string
	Covers  string // one of the Covers constants
	Pattern string // of commands or of files, which can be given otherwise; "" where Covers is another
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
	Mode   string          // one of the constants; "" is none
	Schema json.RawMessage // of a form: what is asked for, the agent's own JSON
	URL    string          // what is to be opened
	ID     string          // the agent's own id of what is to be opened
}

// Values of Elicitation.Mode.
const (
	ElicitForm = "form"
	ElicitURL  = "url"
)
