package acpagent

import (
	"encoding/json"
)

// An updateNotification tells a client what happens in a session.
type updateNotification struct {
	SessionID string `json:"sessionId"`
	Update    any    `json:"update"` // one of the types below, or JSON
}

// The kinds of updates.
const (
	userMessageChunk  = "user_message_chunk"
	agentMessageChunk = "agent_message_chunk"
	agentThoughtChunk = "agent_thought_chunk"
	kindToolCall      = "tool_call"
	kindToolUpdate    = "tool_call_update"
	kindPlan          = "plan"
	kindCommands      = "available_commands_update"
	kindMode          = "current_mode_update"
	kindConfig        = "config_option_update"
	kindInfo          = "session_info_update"
	kindUsage         = "usage_update"

	// Of version 2.
	kindUserMessage   = "user_message"
	kindAgentMessage  = "agent_message"
	kindAgentThought  = "agent_thought"
	kindState         = "state_update"
	kindPlanUpdate    = "plan_update"
	kindTerminal      = "terminal_update"
	kindTerminalChunk = "terminal_output_chunk"

	// Of both.
	kindNotice            = "notice"
	kindCompaction        = "compaction_update"
	kindCompactionSummary = "compaction_summary_chunk"
)

// A schemaChunk is a piece of a message or of a thought.
type schemaChunk struct {
	Kind      string         `json:"sessionUpdate"`
	MessageID string         `json:"messageId,omitempty"`
	Content   content        `json:"content"`
	Meta      map[string]any `json:"_meta,omitempty"`
}

// content is a content block.
type content struct {
	Type     string    `json:"type"`
	Text     *string   `json:"text,omitempty"`
	Data     string    `json:"data,omitempty"` // base64
	MIMEType string    `json:"mimeType,omitempty"`
	URI      string    `json:"uri,omitempty"`
	Name     string    `json:"name,omitempty"`
	Title    string    `json:"title,omitempty"`
	Size     int64     `json:"size,omitempty"`
	Resource *resource `json:"resource,omitempty"`
}

// A resource is an embedded one.
type resource struct {
	URI      string  `json:"uri"`
	MIMEType string  `json:"mimeType,omitempty"`
	Text     *string `json:"text,omitempty"`
	Blob     string  `json:"blob,omitempty"` // base64
}

// schemaText is a text as a content block.
func schemaText(text string) content { return content{Type: "text", Text: &text} }

// A schemaToolCall begins a tool call, or says what is another of one. What is absent of
// the latter is as it was.
type schemaToolCall struct {
	Kind       string          `json:"sessionUpdate,omitempty"` // absent in a question
	ToolCallID string          `json:"toolCallId"`
	Name       string          `json:"name,omitempty"` // of the tool
	Title      string          `json:"title,omitempty"`
	ToolKind   string          `json:"kind,omitempty"`
	Status     string          `json:"status,omitempty"`
	Content    []toolContent   `json:"content,omitzero"`
	Locations  []location      `json:"locations,omitzero"`
	RawInput   json.RawMessage `json:"rawInput,omitempty"`
	RawOutput  json.RawMessage `json:"rawOutput,omitempty"`
	Meta       map[string]any  `json:"_meta,omitempty"`

	Capabilities *workCapabilities `json:"capabilities,omitempty"` // of version 2
}

// States of a tool call.
const (
	pending      = "pending"
	inProgress   = "in_progress"
	completed    = "completed"
	schemaFailed = "failed"

	// Of version 2.
	paused            = "paused"
	toolCallCancelled = "cancelled"
)

// toolContent is something that a tool call has made: content, a diff or a terminal.
type toolContent struct {
	Type       string   `json:"type"`
	Content    *content `json:"content,omitempty"`
	Path       string   `json:"path,omitempty"`
	OldText    *string  `json:"oldText,omitempty"`
	NewText    *string  `json:"newText,omitempty"`
	TerminalID string   `json:"terminalId,omitempty"`
}

// A location is a file that a tool call is about.
type location struct {
	Path string `json:"path"`
	Line *int   `json:"line,omitempty"`
}

// A schemaPlan is an agent's plan, whole.
type schemaPlan struct {
	Kind    string      `json:"sessionUpdate"`
	Entries []planEntry `json:"entries"`
}

// A planEntry is a step of it.
type planEntry struct {
	Content  string `json:"content"`
	Priority string `json:"priority"`
	Status   string `json:"status"`
}

// schemaCommands are the slash commands that there are.
type schemaCommands struct {
	Kind     string          `json:"sessionUpdate"`
	Commands []schemaCommand `json:"availableCommands"`
}

// A schemaCommand is one of them.
type schemaCommand struct {
	Name        string        `json:"name"`
	Description string        `json:"description"`
	Input       *commandInput `json:"input,omitempty"`
}

// commandInput is what may follow a command.
type commandInput struct {
	Hint string `json:"hint"`
}

// modeUpdate says in which mode the session is now.
type modeUpdate struct {
	Kind    string `json:"sessionUpdate"`
	Current string `json:"currentModeId"`
}

// configUpdate has all choices as they are now.
type configUpdate struct {
	Kind          string               `json:"sessionUpdate"`
	ConfigOptions []schemaConfigOption `json:"configOptions"`
}

// infoUpdate says what the session is called now.
type infoUpdate struct {
	Kind      string         `json:"sessionUpdate"`
	Title     string         `json:"title,omitempty"`
	UpdatedAt string         `json:"updatedAt,omitempty"`
	Meta      map[string]any `json:"_meta,omitempty"`
}

// schemaUsageUpdate says how full the context is, and what the session has cost.
type schemaUsageUpdate struct {
	Kind string `json:"sessionUpdate"`
	Used int64  `json:"used"`
	Size int64  `json:"size"`
	Cost *cost  `json:"cost,omitempty"`

	Meta map[string]any `json:"_meta,omitempty"`
}

// A cost is an amount of money.
type cost struct {
	Amount   float64 `json:"amount"`
	Currency string  `json:"currency"`
}
