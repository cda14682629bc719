package schema

import "encoding/json"

// An UpdateNotification tells a client what happens in a session.
type UpdateNotification struct {
	SessionID string `json:"sessionId"`
	Update    any    `json:"update"` // one of the types below, or JSON
}

// The kinds of updates.
const (
	UserMessageChunk  = "user_message_chunk"
	AgentMessageChunk = "agent_message_chunk"
	AgentThoughtChunk = "agent_thought_chunk"
	KindToolCall      = "tool_call"
	KindToolUpdate    = "tool_call_update"
	KindPlan          = "plan"
	KindCommands      = "available_commands_update"
	KindMode          = "current_mode_update"
	KindConfig        = "config_option_update"
	KindInfo          = "session_info_update"
	KindUsage         = "usage_update"

	// Of version 2.
	KindUserMessage   = "user_message"
	KindAgentMessage  = "agent_message"
	KindAgentThought  = "agent_thought"
	KindState         = "state_update"
	KindPlanUpdate    = "plan_update"
	KindTerminal      = "terminal_update"
	KindTerminalChunk = "terminal_output_chunk"

	// Of both.
	KindNotice            = "notice"
	KindCompaction        = "compaction_update"
	KindCompactionSummary = "compaction_summary_chunk"
)

// A Chunk is a piece of a message or of a thought.
type Chunk struct {
	Kind      string         `json:"sessionUpdate"`
	MessageID string         `json:"messageId,omitempty"`
	Content   Content        `json:"content"`
	Meta      map[string]any `json:"_meta,omitempty"`
}

// Content is a content block.
type Content struct {
	Type     string    `json:"type"`
	Text     *string   `json:"text,omitempty"`
	Data     string    `json:"data,omitempty"` // base64
	MIMEType string    `json:"mimeType,omitempty"`
	URI      string    `json:"uri,omitempty"`
	Name     string    `json:"name,omitempty"`
	Title    string    `json:"title,omitempty"`
	Size     int64     `json:"size,omitempty"`
	Resource *Resource `json:"resource,omitempty"`
}

// A Resource is an embedded one.
type Resource struct {
	URI      string  `json:"uri"`
	MIMEType string  `json:"mimeType,omitempty"`
	Text     *string `json:"text,omitempty"`
	Blob     string  `json:"blob,omitempty"` // base64
}

// Text is a text as a content block.
func Text(text string) Content { return Content{Type: "text", Text: &text} }

// A ToolCall begins a tool call, or says what is another of one. What is absent of
// the latter is as it was.
type ToolCall struct {
	Kind       string          `json:"sessionUpdate,omitempty"` // absent in a question
	ToolCallID string          `json:"toolCallId"`
	Name       string          `json:"name,omitempty"` // of the tool
	Title      string          `json:"title,omitempty"`
	ToolKind   string          `json:"kind,omitempty"`
	Status     string          `json:"status,omitempty"`
	Content    []ToolContent   `json:"content,omitzero"`
	Locations  []Location      `json:"locations,omitzero"`
	RawInput   json.RawMessage `json:"rawInput,omitempty"`
	RawOutput  json.RawMessage `json:"rawOutput,omitempty"`
	Meta       map[string]any  `json:"_meta,omitempty"`

	Capabilities *WorkCapabilities `json:"capabilities,omitempty"` // of version 2
}

// States of a tool call.
const (
	Pending    = "pending"
	InProgress = "in_progress"
	Completed  = "completed"
	Failed     = "failed"

	// Of version 2.
	Paused            = "paused"
	ToolCallCancelled = "cancelled"
)

// ToolContent is something that a tool call has made: content, a diff or a terminal.
type ToolContent struct {
	Type       string   `json:"type"`
	Content    *Content `json:"content,omitempty"`
	Path       string   `json:"path,omitempty"`
	OldText    *string  `json:"oldText,omitempty"`
	NewText    *string  `json:"newText,omitempty"`
	TerminalID string   `json:"terminalId,omitempty"`
}

// A Location is a file that a tool call is about.
type Location struct {
	Path string `json:"path"`
	Line *int   `json:"line,omitempty"`
}

// A Plan is an agent's plan, whole.
type Plan struct {
	Kind    string      `json:"sessionUpdate"`
	Entries []PlanEntry `json:"entries"`
}

// A PlanEntry is a step of it.
type PlanEntry struct {
	Content  string `json:"content"`
	Priority string `json:"priority"`
	Status   string `json:"status"`
}

// Commands are the slash commands that there are.
type Commands struct {
	Kind     string    `json:"sessionUpdate"`
	Commands []Command `json:"availableCommands"`
}

// A Command is one of them.
type Command struct {
	Name        string        `json:"name"`
	Description string        `json:"description"`
	Input       *CommandInput `json:"input,omitempty"`
}

// CommandInput is what may follow a command.
type CommandInput struct {
	Hint string `json:"hint"`
}

// ModeUpdate says in which mode the session is now.
type ModeUpdate struct {
	Kind    string `json:"sessionUpdate"`
	Current string `json:"currentModeId"`
}

// ConfigUpdate has all choices as they are now.
type ConfigUpdate struct {
	Kind          string         `json:"sessionUpdate"`
	ConfigOptions []ConfigOption `json:"configOptions"`
}

// InfoUpdate says what the session is called now.
type InfoUpdate struct {
	Kind      string         `json:"sessionUpdate"`
	Title     string         `json:"title,omitempty"`
	UpdatedAt string         `json:"updatedAt,omitempty"`
	Meta      map[string]any `json:"_meta,omitempty"`
}

// UsageUpdate says how full the context is, and what the session has cost.
type UsageUpdate struct {
	Kind string `json:"sessionUpdate"`
	Used int64  `json:"used"`
	Size int64  `json:"size"`
	Cost *Cost  `json:"cost,omitempty"`

	Meta map[string]any `json:"_meta,omitempty"`
}

// A Cost is an amount of money.
type Cost struct {
	Amount   float64 `json:"amount"`
	Currency string  `json:"currency"`
}
