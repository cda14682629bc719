package wire

import (
	"cmp"
	"context"
	"encoding/json"
	"strings"

	"github.com/duet-rpc/duet-rpc/client"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/protocol"
)

// Types of approvals: whether a tool may run, and what else a person is asked.
const (
	FunctionCall = "function_call"
	HumanContact = "human_contact"
)

// An Approval is what an agent asks.
type Approval struct {
	ID        string           `json:"approval_id"`
	CallID    string           `json:"call_id"`
	ToolUseID string           `json:"tool_use_id"`
	TaskID    string           `json:"task_id"`
	ThreadID  string           `json:"thread_id"`
	Agent     string           `json:"agent"`
	Type      string           `json:"type"`
	Tool      string           `json:"tool_name"`
	ToolKind  string           `json:"tool_kind"`
	Input     json.RawMessage  `json:"tool_input"`
	Editable  bool             `json:"input_editable"`
	Title     string           `json:"title"`
	Subject   string           `json:"subject"`
	Options   []ApprovalOption `json:"options"`
	Diff      string           `json:"diff"`  // of getApproval: the whole, in text
	Diffs     []domain.Diff    `json:"diffs"` // of the event, instead
	Paths     []string         `json:"paths"`
	Status    string           `json:"status"`
	Stale     bool             `json:"stale"`
	Reopened  string           `json:"reopened"`
	Truncated bool             `json:"truncated"`
	SessionID string           `json:"session_id"`
	CreatedAt string           `json:"created_at"`
	Deadline  string           `json:"deadline"`
	Comment   string           `json:"comment"`
	Response  string           `json:"response"`
	DecidedBy string           `json:"decided_by"`

	Explanation  string                `json:"explanation"`  // of what decided by itself
	Details      string                `json:"details"`      // what the agent says about the tool call beside its title and input
	Plan         string                `json:"plan"`         // what the agent would do next
	Rules        protocol.RulePreviews `json:"rule_preview"` // by scope
	TakesComment bool                  `json:"takes_comment"`
	OptionsOnly  bool                  `json:"options_only"` // it takes no other words
	Declinable   bool                  `json:"declinable"`   // though it is a question

	protocol.Elicitation
	Content json.RawMessage `json:"content"`
}

// Values of Elicitation.Mode.
const (
	ModeForm = "form"
	ModeURL  = "url"
)

// An ApprovalOption is an answer that an agent offers.
type ApprovalOption struct {
	OptionID string `json:"option_id"`
	Name     string `json:"name"`
	Kind     string `json:"kind"`
}

// Rejects reports whether an agent that is given the option does not do what it
// asks for.
func (o ApprovalOption) Rejects() bool { return strings.HasPrefix(o.Kind, "reject_") }

// InWords is the option as people are shown it: its name, and what its kind adds.
func (o ApprovalOption) InWords() string {
	name := cmp.Or(o.Name, o.OptionID)
	switch o.Kind {
	case "allow_always":
		return name + " (allows; the agent remembers it)"
	case "allow_once":
		return name + " (allows)"
	case "reject_always":
		return name + " (denies; the agent remembers it)"
	case "reject_once":
		return name + " (denies)"
	}
	return name
}

// Asks is what is asked, in words.
func (a Approval) Asks() string {
	text := cmp.Or(a.Title, a.Subject, a.Tool, "a question")
	if a.Tool != "" && !strings.Contains(text, a.Tool) {
		text = a.Tool + ": " + text
	}
	return text
}

// A Decision answers an approval.
type Decision struct {
	ID       string          `json:"approval_id"`
	Decision string          `json:"decision"` // Approve, Deny, Respond or Cancel
	Comment  string          `json:"comment,omitempty"`
	Option   string          `json:"option,omitempty"`
	Scope    string          `json:"scope,omitempty"`
	Input    json.RawMessage `json:"updated_input,omitempty"`
	Content  json.RawMessage `json:"content,omitempty"`
	Pattern  string          `json:"pattern,omitempty"`
	Tell     bool            `json:"tell,omitempty"`
}

// Values of Decision.Decision.
const (
	Approve = "approve"
	Deny    = "deny"
	Respond = "respond"
	Cancel  = "cancel"
)

// A Decided is the hub's answer to a decision.
type Decided struct {
	Success    bool   `json:"success"`
	Error      string `json:"error"`
	Status     string `json:"status"`
	ToldTaskID string `json:"told_task_id"` // the task that tells the agent; or empty
}

// Decide sends a decision. Where somebody else was first, the result says so.
func Decide(ctx context.Context, c *client.Client, d Decision) (Decided, json.RawMessage, error) {
	return Call[Decided](ctx, c, "sendDecision", d)
}

// OpenApprovals are the approvals that nobody has answered, of a session or,
// without one, of all.
func OpenApprovals(ctx context.Context, c *client.Client, session string) ([]Approval, json.RawMessage, error) {
	params := map[string]string{}
	if session != "" {
		params["session_id"] = session
	}
	r, raw, err := Call[struct{ Approvals []Approval }](ctx, c, "fetchApprovals", params)
	return r.Approvals, raw, err
}

// GetApproval asks for all of an approval by its whole id.
func GetApproval(ctx context.Context, c *client.Client, id string) (Approval, json.RawMessage, error) {
	r, raw, err := Call[struct{ Approval Approval }](ctx, c, "getApproval", map[string]string{"approval_id": id})
	return r.Approval, raw, err
}
