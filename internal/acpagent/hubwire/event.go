package hubwire

import (
	"encoding/json"

	"github.com/duet-rpc/duet-rpc/client"
)

// The types of events that are told apart.
const (
	EventStatus       = "session_status_changed"
	EventConversation = "conversation_updated"
	EventApproval     = "new_approval"
	EventResolved     = "approval_resolved"
	EventSettings     = "session_settings_changed"
	EventDelta        = "message_delta"
	EventThinking     = "thinking_delta"
	EventPlan         = "plan"
	EventUsage        = "usage"
	EventTerminal     = "terminal_output"
	EventTerminalExit = "terminal_exit"
	EventError        = "task_error"
	EventUpdate       = "agent_update"
	EventAgentSession = "agent_session"
	EventDeleted      = "session_deleted"
	EventLagged       = client.TypeLagged
)

// EventTypes are those to subscribe to.
var EventTypes = []string{
	EventStatus, EventConversation, EventApproval, EventResolved, EventSettings, EventDelta, EventThinking, EventPlan, EventUsage,
	EventTerminal, EventTerminalExit, EventError, EventUpdate, EventAgentSession, EventDeleted, EventLagged,
}

// Kinds of what is said and done in a conversation.
const (
	Message    = "message"
	Thinking   = "thinking"
	ToolCall   = "tool_call"
	ToolResult = "tool_result"
	Plan       = "plan"
)

// Event is the data of an event, whatever its type.
type Event struct {
	SessionID string `json:"session_id"`
	ThreadID  string `json:"thread_id"`

	State       string       `json:"state"`
	Reason      string       `json:"reason"`
	Error       string       `json:"error"`
	ErrorCode   string       `json:"error_code"`
	StopReason  string       `json:"stop_reason"`
	AuthMethods []AuthMethod `json:"auth_methods"`

	MessageID   string          `json:"message_id"`
	Delta       string          `json:"delta"`
	EventType   string          `json:"event_type"`
	Role        string          `json:"role"`
	Content     string          `json:"content"`
	ToolID      string          `json:"tool_id"`
	ToolName    string          `json:"tool_name"`
	ToolTitle   string          `json:"tool_title"`
	ToolKind    string          `json:"tool_kind"`
	ToolStatus  string          `json:"tool_status"`
	ToolInput   json.RawMessage `json:"tool_input"`
	ToolData    *ToolData       `json:"tool_data"`
	Result      string          `json:"tool_result_content"`
	Refusal     string          `json:"refusal"`
	ParentTool  string          `json:"parent_tool_use_id"`
	Attachments []Attachment    `json:"attachments"`
	Entries     []PlanEntry     `json:"entries"`

	ContextUsed int64   `json:"context_used"`
	ContextSize int64   `json:"context_size"`
	CostUSD     float64 `json:"cost_usd"`

	Title     *string `json:"title"`
	Mode      *string `json:"permission_mode"`
	Model     *string `json:"model"`
	AgentMode string  `json:"agent_mode"`

	ApprovalID string `json:"approval_id"`
	TerminalID string `json:"terminal_id"`
	Data       string `json:"data"`
	Encoding   string `json:"encoding"`
	ExitCode   int    `json:"exit_code"`

	Code    string          `json:"code"`
	Message string          `json:"message"`
	Update  json.RawMessage `json:"update"`
}

// Read is the data of an event. What cannot be read of it is zero.
func Read(e client.Event) (d Event) {
	_ = json.Unmarshal(e.Data, &d)
	return d
}

// ToolData is what a tool call has beside its input and its result.
type ToolData struct {
	Paths       []string     `json:"paths"`
	Diffs       []Diff       `json:"diffs"`
	Terminal    string       `json:"terminal"`
	Attachments []Attachment `json:"attachments"`
}

// A Diff is a change of a file.
type Diff struct {
	Path    string  `json:"path"`
	OldText *string `json:"old_text"` // nil: the file is new
	NewText string  `json:"new_text"`
}

// An Attachment is content that is no text.
type Attachment struct {
	Type     string `json:"type"` // as of a content block
	ID       string `json:"attachment_id"`
	MIMEType string `json:"mime_type"`
	Size     int64  `json:"size"`
	Name     string `json:"name"`
	Title    string `json:"title"`
	URI      string `json:"uri"`
}

// A PlanEntry is a step of an agent's plan.
type PlanEntry struct {
	Content  string `json:"content"`
	Priority string `json:"priority"`
	Status   string `json:"status"`
}

// Ended reports whether a state of a session is final.
func Ended(state string) bool {
	switch state {
	case Completed, Failed, TimedOut, Cancelled, Interrupted, Discarded:
		return true
	}
	return false
}

// Final states of a session.
const (
	Completed   = "completed"
	Failed      = "failed"
	TimedOut    = "timed_out"
	Cancelled   = "cancelled"
	Interrupted = "interrupted"
	Discarded   = "discarded"
)
