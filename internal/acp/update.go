package acp

import (
	"encoding/json"
)

// An UpdateNotification reports an update of a session to a client.
type UpdateNotification struct {
	SessionID string `json:"sessionId"`
	Update    any    `json:"update"` // one of the types below, or JSON
}

// The kinds of updates.
const (
	KindUserMessageChunk  = "user_message_chunk"
	KindAgentMessageChunk = "agent_message_chunk"
	KindAgentThoughtChunk = "agent_thought_chunk"
	KindToolCall          = "tool_call"
	KindToolUpdate        = "tool_call_update"
	KindPlan              = "plan"
	KindCommands          = "available_commands_update"
	KindMode              = "current_mode_update"
	KindConfig            = "config_option_update"
	KindInfo              = "session_info_update"
	KindUsage             = "usage_update"

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

// A MessageChunk is a piece of a message or of a thought.
type MessageChunk struct {
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

// A Resource is an embedded resource.
type Resource struct {
	URI      string  `json:"uri"`
	MIMEType string  `json:"mimeType,omitempty"`
	Text     *string `json:"text,omitempty"`
	Blob     string  `json:"blob,omitempty"` // base64
}

// TextContent returns a text as a content block.
func TextContent(text string) Content { return Content{Type: "text", Text: &text} }

// LinkContent returns a link to a resource.
func LinkContent(name, uri string) Content {
	return Content{Type: "resource_link", Name: name, URI: uri}
}

// A ToolCall begins or updates a tool call. An absent member of an update means no change.
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
	ToolPending    = "pending"
	ToolInProgress = "in_progress"
	ToolCompleted  = "completed"
	ToolFailed     = "failed"

	// Of version 2.
	ToolPaused    = "paused"
	ToolCancelled = "cancelled"
)

// ToolContent is an item of a tool call's content: a content block, a diff or a terminal.
type ToolContent struct {
	Type       string   `json:"type"`
	Content    *Content `json:"content,omitempty"`
	Path       string   `json:"path,omitempty"`
	OldText    *string  `json:"oldText,omitempty"`
	NewText    *string  `json:"newText,omitempty"`
	TerminalID string   `json:"terminalId,omitempty"`
}

// A Location is a file that a tool call accesses.
type Location struct {
	Path string `json:"path"`
	Line *int   `json:"line,omitempty"`
}

// A PlanUpdate is an agent's plan, whole.
type PlanUpdate struct {
	Kind    string      `json:"sessionUpdate"`
	Entries []PlanEntry `json:"entries"`
}

// A PlanEntry is a step of a plan.
type PlanEntry struct {
	Content  string `json:"content"`
	Priority string `json:"priority"`
	Status   string `json:"status"`
}

// CommandsUpdate lists the available slash commands.
type CommandsUpdate struct {
	Kind     string    `json:"sessionUpdate"`
	Commands []Command `json:"availableCommands"`
}

// A Command is a slash command.
type Command struct {
	Name        string        `json:"name"`
	Description string        `json:"description"`
	Input       *CommandInput `json:"input,omitempty"`
}

// CommandInput describes the text after a command.
type CommandInput struct {
	Hint string `json:"hint"`
}

// ModeUpdate reports the session's current mode.
type ModeUpdate struct {
	Kind    string `json:"sessionUpdate"`
	Current string `json:"currentModeId"`
}

// ConfigUpdate reports all options with their current values.
type ConfigUpdate struct {
	Kind          string         `json:"sessionUpdate"`
	ConfigOptions []ConfigOption `json:"configOptions"`
}

// InfoUpdate reports the session's title.
type InfoUpdate struct {
	Kind      string         `json:"sessionUpdate"`
	Title     string         `json:"title,omitempty"`
	UpdatedAt string         `json:"updatedAt,omitempty"`
	Meta      map[string]any `json:"_meta,omitempty"`
}

// UsageUpdate reports how full the context is, and what the session has cost.
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

// A MessageUpdate is a whole message, in version 2. It replaces the client's version of the
// message.
type MessageUpdate struct {
	Kind      string `json:"sessionUpdate"`
	MessageID string `json:"messageId"`
	Content   []any  `json:"content"` // content blocks
}

// A StateUpdate reports whether the agent works in the foreground of a session, in version 2.
type StateUpdate struct {
	Kind       string `json:"sessionUpdate"`
	State      string `json:"state"`
	StopReason string `json:"stopReason,omitempty"` // of StateIdle
	Error      error  `json:"error,omitempty"`      // of the stop reason error: a JSON-RPC error
	Usage      *Usage `json:"usage,omitempty"`
	Background []any  `json:"background"` // the complete list, each item a BackgroundWork
}

// Values of StateUpdate.State.
const (
	StateRunning        = "running"
	StateRequiresAction = "requires_action"
	StateIdle           = "idle"
)

// BackgroundWork is work that continues while the session is idle.
type BackgroundWork struct {
	Type       string `json:"type"`
	TerminalID string `json:"terminalId,omitempty"`
	ToolCallID string `json:"toolCallId,omitempty"`
	ProcessID  string `json:"processId,omitempty"` // of WorkProcess
	Title      string `json:"title,omitempty"`     // of WorkProcess
}

// Values of BackgroundWork.Type. WorkProcess is Duet's own: a process of the agent that belongs
// to no terminal or tool call known to Duet.
const (
	WorkTerminal = "terminal"
	WorkToolCall = "tool_call"
	WorkProcess  = "_duet_process"
)

// A TerminalUpdate begins a terminal of the agent, or changes it.
type TerminalUpdate struct {
	Kind       string           `json:"sessionUpdate"`
	TerminalID string           `json:"terminalId"`
	Command    string           `json:"command,omitempty"`
	CWD        string           `json:"cwd,omitempty"`
	Output     *TerminalContent `json:"output,omitempty"`
	ExitStatus *ExitStatus      `json:"exitStatus,omitempty"`

	Capabilities *WorkCapabilities `json:"capabilities,omitempty"`
}

// WorkCapabilities are the requests that a client may send about a terminal or a tool call.
type WorkCapabilities struct {
	Cancel *Empty `json:"cancel,omitempty"`
}

// A CancelWorkRequest is the parameters of terminal/cancel and tool_call/cancel.
type CancelWorkRequest struct {
	SessionID  string `json:"sessionId"`
	TerminalID string `json:"terminalId,omitempty"`
	ToolCallID string `json:"toolCallId,omitempty"`
}

// TerminalContent is the whole output of a terminal.
type TerminalContent struct {
	Data []byte `json:"data"`
}

// A TerminalChunk is new output of a terminal.
type TerminalChunk struct {
	Kind       string `json:"sessionUpdate"`
	TerminalID string `json:"terminalId"`
	Data       []byte `json:"data"`
}

// A Notice is information for the user that is no part of the transcript.
type Notice struct {
	Kind        string `json:"sessionUpdate"`
	Severity    string `json:"severity"`
	Title       string `json:"title"`
	Description string `json:"description,omitempty"`
}

// Values of Notice.Severity.
const (
	SeverityInfo    = "info"
	SeverityWarning = "warning"
	SeverityError   = "error"
)
