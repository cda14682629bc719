package hubwire

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/duet-rpc/duet-rpc/client"
)

// Types of approvals.
const (
	FunctionCall = "function_call"
	HumanContact = "human_contact"
)

// Values of Approval.Mode.
const (
	ModeForm = "form"
	ModeURL  = "url"
)

// An Approval is what an agent asks.
type Approval struct {
	ID        string           `json:"approval_id"`
	SessionID string           `json:"session_id"`
	TaskID    string           `json:"task_id"`
	ThreadID  string           `json:"thread_id"`
	ToolUseID string           `json:"tool_use_id"`
	Agent     string           `json:"agent"`
	Type      string           `json:"type"`
	Tool      string           `json:"tool_name"`
	Input     json.RawMessage  `json:"tool_input"`
	ToolKind  string           `json:"tool_kind"`
	Title     string           `json:"title"`
	Subject   string           `json:"subject"`
	Options   []ApprovalOption `json:"options"`
	Paths     []string         `json:"paths"`
	Diffs     []Diff           `json:"diffs"`
	Plan      string           `json:"plan"`
	Reopened  string           `json:"reopened"`
	Stale     bool             `json:"stale"`

	Mode        string          `json:"mode"` // ModeForm, ModeURL, or "" for none
	Schema      json.RawMessage `json:"schema"`
	URL         string          `json:"url"`
	URLWarnings []string        `json:"url_warnings"`
}

// An ApprovalOption is an answer that an agent offers.
type ApprovalOption struct {
	ID   string `json:"option_id"`
	Name string `json:"name"`
	Kind string `json:"kind"`
}

// Rejects reports whether an agent that is given the option does not do what it asks
// for.
func (o ApprovalOption) Rejects() bool { return strings.HasPrefix(o.Kind, "reject_") }

// ReadApproval is the approval that an event of the type EventApproval tells of. What
// cannot be read of it is zero.
func ReadApproval(e client.Event) (a Approval) {
	_ = json.Unmarshal(e.Data, &a)
	return a
}

// A Decision answers an approval.
type Decision struct {
	ID       string          `json:"approval_id"`
	Decision string          `json:"decision"`
	Comment  string          `json:"comment,omitempty"`
	Option   string          `json:"option,omitempty"`
	Content  json.RawMessage `json:"content,omitempty"`
}

// Values of Decision.Decision.
const (
	Approve = "approve"
	Deny    = "deny"
	Respond = "respond"
	Cancel  = "cancel"
)

// Decided is what becomes of a decision: somebody else may have been first.
type Decided struct {
	Success bool   `json:"success"`
	Error   string `json:"error"`
}

// Decide sends a decision.
func Decide(ctx context.Context, c *client.Client, d Decision) (Decided, error) {
	return Call[Decided](ctx, c, "sendDecision", d)
}

// OpenApprovals are the approvals that wait for an answer, of all sessions.
func OpenApprovals(ctx context.Context, c *client.Client) ([]Approval, error) {
	r, err := Call[struct{ Approvals []Approval }](ctx, c, "fetchApprovals", nil)
	return r.Approvals, err
}
