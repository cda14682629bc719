package humanlayer

import (
	"encoding/json"
	"time"

	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/protocol"
)

// turnIDs name a turn in an event.
type turnIDs struct {
	SessionID string `json:"session_id"`
	RunID     string `json:"run_id"`
	TaskID    string `json:"task_id"`
}

// A statusEvent is a change of a turn's state.
type statusEvent struct {
	turnIDs
	ThreadID        string `json:"thread_id"`
	OldStatus       string `json:"old_status"`
	NewStatus       string `json:"new_status"`
	OldState        string `json:"old_state"`
	State           string `json:"state"`
	ParentSessionID string `json:"parent_session_id,omitempty"`
	Title           string `json:"title,omitempty"`
	Agent           string `json:"agent,omitempty"`
	Reason          string `json:"reason,omitempty"`
	Error           string `json:"error,omitempty"`
	ErrorCode       string `json:"error_code,omitempty"`
	StopReason      string `json:"stop_reason,omitempty"`

	AuthMethods []domain.AuthMethod `json:"auth_methods,omitempty"`
}

// An itemEvent is an item of a conversation: a message, thought, notice or tool call.
type itemEvent struct {
	turnIDs
	NativeID    string                `json:"claude_session_id"`
	EventType   string                `json:"event_type"`
	MessageID   string                `json:"message_id,omitempty"`
	Role        string                `json:"role,omitempty"`
	Content     string                `json:"content,omitempty"`
	ContentType string                `json:"content_type,omitempty"`
	ToolID      string                `json:"tool_id,omitempty"`
	ToolName    string                `json:"tool_name,omitempty"`
	ToolTitle   string                `json:"tool_title,omitempty"`
	ToolKind    string                `json:"tool_kind,omitempty"`
	ToolStatus  string                `json:"tool_status,omitempty"`
	ToolInput   json.RawMessage       `json:"tool_input,omitempty"`
	ToolData    *protocol.ToolDetails `json:"tool_data,omitempty"`
	ResultFor   string                `json:"tool_result_for_id,omitempty"`
	Result      string                `json:"tool_result_content,omitempty"`
	RefusedBy   string                `json:"refused_by,omitempty"`
	Refusal     string                `json:"refusal,omitempty"`
	ParentID    string                `json:"parent_tool_use_id"`
	Subtype     string                `json:"subtype,omitempty"`
	Truncated   bool                  `json:"truncated,omitempty"`
	Attachments []protocol.Attachment `json:"attachments,omitempty"`

	Meta json.RawMessage `json:"_meta,omitempty"`
}

// A deltaEvent is text that is being written.
type deltaEvent struct {
	turnIDs
	MessageID string `json:"message_id"`
	Role      string `json:"role"`
	Text      string `json:"delta"`
	Length    int    `json:"length,omitempty"`
	ParentID  string `json:"parent_tool_use_id,omitempty"`

	Meta json.RawMessage `json:"_meta,omitempty"`
}

// An approvalEvent is a new question.
type approvalEvent struct {
	turnIDs
	ApprovalID   string                `json:"approval_id"`
	CallID       string                `json:"call_id"`
	ToolUseID    string                `json:"tool_use_id"`
	ParentID     string                `json:"parent_tool_use_id,omitempty"`
	Type         string                `json:"type"`
	ToolName     string                `json:"tool_name"`
	ToolInput    json.RawMessage       `json:"tool_input,omitempty"`
	ToolKind     string                `json:"tool_kind,omitempty"`
	Editable     bool                  `json:"input_editable"`
	Ambiguity    string                `json:"input_ambiguity,omitempty"`
	Title        string                `json:"title,omitempty"`
	Subject      string                `json:"subject,omitempty"`
	Options      []domain.Option       `json:"options,omitzero"`
	OptionsOnly  bool                  `json:"options_only,omitempty"`
	Declinable   bool                  `json:"declinable,omitempty"`
	Paths        []string              `json:"paths,omitempty"`
	Diffs        []domain.Diff         `json:"diffs,omitempty"`
	Plan         string                `json:"plan,omitempty"`
	Details      string                `json:"details,omitempty"`
	Rules        protocol.RulePreviews `json:"rule_preview,omitempty"`
	TakesComment bool                  `json:"takes_comment,omitempty"`
	Count        int                   `json:"count"`
	Stale        bool                  `json:"stale,omitempty"`
	Reopens      string                `json:"reopens,omitempty"`
	Reopened     string                `json:"reopened,omitempty"`
	Replayed     bool                  `json:"replayed,omitempty"`
	Truncated    bool                  `json:"truncated,omitempty"`
	*protocol.Elicitation
}

// A resolvedEvent is the end of a question.
type resolvedEvent struct {
	turnIDs
	ApprovalID   string `json:"approval_id"`
	CallID       string `json:"call_id"`
	Type         string `json:"type"`
	Approved     bool   `json:"approved"`
	Decision     string `json:"decision"`
	ResponseText string `json:"response_text"`
	Comment      string `json:"comment,omitempty"`
	Option       string `json:"option,omitempty"`
	DecidedBy    string `json:"decided_by"`
	DecidedIn    string `json:"decided_in,omitempty"`
	Title        string `json:"title,omitempty"`
	ToolName     string `json:"tool_name,omitempty"`
	ToolUseID    string `json:"tool_use_id,omitempty"`
	Edited       bool   `json:"input_was_edited,omitempty"`
	Explanation  string `json:"explanation,omitempty"`
}

// A settingsEvent is a change of a conversation's settings. Absent members did not change.
type settingsEvent struct {
	turnIDs
	EventType          string   `json:"event_type"`
	Title              *string  `json:"title,omitempty"`
	Mode               *string  `json:"permission_mode,omitempty"`
	Model              *string  `json:"model,omitempty"`
	AutoAcceptEdits    *bool    `json:"auto_accept_edits,omitempty"`
	SkipPermissions    *bool    `json:"dangerously_skip_permissions,omitempty"`
	SkipUntil          string   `json:"dangerously_skip_permissions_expires_at,omitempty"`
	Archived           *bool    `json:"archived,omitempty"`
	Reason             string   `json:"reason,omitempty"`
	NativeSession      string   `json:"claude_session_id,omitempty"`
	AgentMode          string   `json:"agent_mode,omitempty"`
	AgentModes         []string `json:"agent_modes,omitempty"`
	SessionWasReplaced bool     `json:"session_was_replaced,omitempty"`
	Forked             bool     `json:"forked,omitempty"`

	AgentModeChoices []domain.Choice   `json:"agent_mode_choices,omitempty"`
	Options          map[string]string `json:"options,omitempty"`
	RequestedAgent   *string           `json:"requested_agent,omitempty"`
}

// A terminalEvent is output of a terminal.
type terminalEvent struct {
	TerminalID string `json:"terminal_id"`
	TaskID     string `json:"task_id,omitempty"`
	Data       string `json:"data"`
	Encoding   string `json:"encoding"`
}

// A terminalExitEvent is the end of a terminal's program.
type terminalExitEvent struct {
	TerminalID string `json:"terminal_id"`
	TaskID     string `json:"task_id,omitempty"`
	ExitCode   int    `json:"exit_code"`
	Signal     string `json:"signal,omitempty"`
}

// A deletedEvent says that turns of a session were deleted.
type deletedEvent struct {
	ThreadID   string   `json:"thread_id"`
	SessionIDs []string `json:"session_ids"`
	TaskIDs    []string `json:"task_ids"`
	Turns      []string `json:"turns"`
	Kept       int      `json:"kept,omitempty"`
}

// A triggerEvent is an execution of a trigger. It has the ids of the turn that it started.
type triggerEvent struct {
	*turnIDs
	Execution int64  `json:"execution_id"`
	Trigger   string `json:"trigger"`
	EventType string `json:"event_type"`
	Action    string `json:"action"`
	Status    string `json:"status"`
	Message   string `json:"message,omitempty"`
	Channel   string `json:"channel,omitempty"`
	Approval  string `json:"approval_id,omitempty"`
	Error     string `json:"error,omitempty"`
}

// A queueEvent is a change of a conversation's queue.
type queueEvent struct {
	turnIDs
	Content   *string  `json:"content,omitempty"`
	Truncated bool     `json:"truncated,omitempty"`
	Order     []string `json:"order"`
}

// A silentEvent says that an agent gives no sign of life, or works again.
type silentEvent struct {
	turnIDs
	Since     time.Time `json:"since"`
	Note      string    `json:"note,omitempty"`
	ToolID    string    `json:"tool_id,omitempty"`
	ToolTitle string    `json:"tool_title,omitempty"`
	Ended     bool      `json:"ended"`
}
