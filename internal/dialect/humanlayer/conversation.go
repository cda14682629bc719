package humanlayer

import (
	"encoding/json"
	"time"

	"github.com/duet-rpc/duet-rpc/internal/protocol"
)

type ConversationParams struct {
	SessionID       string `json:"session_id,omitempty" doc:"The session, by any id of the run. This or claude_session_id is required."`
	ClaudeSessionID string `json:"claude_session_id,omitempty" doc:"The agent's id of its session."`
	Offset          uint   `json:"offset,omitempty" doc:"Number of events to skip."`
	Limit           *uint  `json:"limit,omitempty" doc:"Maximum number of events. Absent or 0: as many as fit, at most 10,000."`
}

func (p ConversationParams) Check() error {
	if p.ClaudeSessionID != "" {
		return nil
	}
	return protocol.NotEmpty("session_id", p.SessionID)
}

type ConversationResult struct {
	Events     []*ConversationEvent `json:"events"`
	Total      int                  `json:"total" doc:"Total number of events."`
	NextOffset *int                 `json:"next_offset,omitempty" doc:"Present if there are more: pass it as offset."`
}

// A ConversationEvent is an event of a conversation: HumanLayer's members and ours.
type ConversationEvent struct {
	ID              int64     `json:"id"`
	SessionID       string    `json:"session_id" doc:"The session in which the event happened."`
	ClaudeSessionID string    `json:"claude_session_id"`
	Sequence        int       `json:"sequence" doc:"Position in the whole conversation, from 1."`
	EventType       string    `json:"event_type" doc:"message, thinking, tool_call, tool_result or system. With LSP framing also plan, diff (a file that the session changed) and approval (a user's answer)."`
	CreatedAt       time.Time `json:"created_at"`
	Role            string    `json:"role,omitempty" doc:"user or assistant."`
	Content         string    `json:"content,omitempty"`

	ToolID            string `json:"tool_id,omitempty"`
	ToolName          string `json:"tool_name,omitempty"`
	ToolInputJSON     string `json:"tool_input_json,omitempty" doc:"The input, as a string that contains JSON."`
	ParentToolUseID   string `json:"parent_tool_use_id,omitempty"`
	ToolResultForID   string `json:"tool_result_for_id,omitempty"`
	ToolResultContent string `json:"tool_result_content,omitempty"`
	IsCompleted       bool   `json:"is_completed" doc:"Tool call: it has ended. Other events: the text is complete."`
	ApprovalStatus    string `json:"approval_status,omitempty" doc:"pending, approved, denied, responded, expired or cancelled."`
	ApprovalID        string `json:"approval_id,omitempty"`
	RefusedBy         string `json:"refused_by,omitempty" doc:"Tool call and its result: what refused the call, as decided_by of an approval. Absent if the call failed for another reason."`
	Refusal           string `json:"refusal,omitempty" doc:"The reason, for people."`

	SessionState string `json:"session_state,omitempty" doc:"Only if the session did not end well: interrupted, failed, timed_out or cancelled."`

	Seq      int64           `json:"seq,omitempty" doc:"Number of the log event that changed it last."`
	Key      string          `json:"key,omitempty" doc:"The message_id in message_delta and thinking_delta."`
	Title    string          `json:"title,omitempty" doc:"Tool call: what it does, for people."`
	ToolKind string          `json:"tool_kind,omitempty" doc:"read, edit, delete, move, search, execute, think, fetch or other."`
	Status   string          `json:"status,omitempty" doc:"Tool call: pending, in_progress, completed or failed. Message: cancelled if it was withdrawn before the agent got it; the agent never gets it."`
	Data     json.RawMessage `json:"data,omitempty" doc:"Tool call: paths, diffs, terminal, attachments, _meta. Message or thought: attachments, _meta (the agent's own, at most 8 KiB). Plan: entries. Diff: path, added, removed, binary. Approval: approval_id, type, decision, title, response_text, input_was_edited, decided_by, decided_in (the client in which the user decided), explanation."`
}

func (e *ConversationEvent) Texts() []*string {
	return []*string{&e.Content, &e.ToolInputJSON, &e.ToolResultContent, &e.Refusal}
}
