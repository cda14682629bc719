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

// A schemaMessage is a whole message, in version 2. It takes the place of what a client has of it.
type schemaMessage struct {
	Kind      string `json:"sessionUpdate"`
	MessageID string `json:"messageId"`
	Content   []any  `json:"content"` // content blocks
}

// A stateUpdate says whether the agent works in the foreground of a session, in version 2.
type stateUpdate struct {
	Kind       string `json:"sessionUpdate"`
	State      string `json:"state"`
	StopReason string `json:"stopReason,omitempty"` // of StateIdle
	Error      error  `json:"error,omitempty"`      // of StoppedByError: an error of JSON-RPC
	Usage      *usage `json:"usage,omitempty"`
	Background []any  `json:"background"` // all of it, each a BackgroundWork
}

// Values of StateUpdate.State.
const (
	stateRunning        = "running"
	stateRequiresAction = "requires_action"
	stateIdle           = "idle"
)

// backgroundWork is work that goes on while the session is idle.
type backgroundWork struct {
	Type       string `json:"type"`
	TerminalID string `json:"terminalId,omitempty"`
	ToolCallID string `json:"toolCallId,omitempty"`
	ProcessID  string `json:"processId,omitempty"` // of WorkProcess
	Title      string `json:"title,omitempty"`     // of WorkProcess
}

// Values of BackgroundWork.Type. WorkProcess is Duet's own: a process of the agent that
// belongs to no terminal and no tool call that Duet knows.
const (
	workTerminal = "terminal"
	workToolCall = "tool_call"
	workProcess  = "_duet_process"
)

// A schemaTerminalUpdate begins a terminal of the agent, or tells what has changed.
type schemaTerminalUpdate struct {
	Kind       string          `json:"sessionUpdate"`
	TerminalID string          `json:"terminalId"`
	Command    string          `json:"command,omitempty"`
	Output     *terminalOutput `json:"output,omitempty"`
	ExitStatus *exitStatus     `json:"exitStatus,omitempty"`

	Capabilities *workCapabilities `json:"capabilities,omitempty"`
}

// workCapabilities say what a client may ask of a terminal or a tool call.
type workCapabilities struct {
	Cancel *present `json:"cancel,omitempty"`
}

// A cancelWorkRequest is the parameters of terminal/cancel and tool_call/cancel.
type cancelWorkRequest struct {
	SessionID  string `json:"sessionId"`
	TerminalID string `json:"terminalId,omitempty"`
	ToolCallID string `json:"toolCallId,omitempty"`
}

// terminalOutput is all that a terminal shows.
type terminalOutput struct {
	Data []byte `json:"data"`
}

// An exitStatus is how the program of a terminal ended.
type exitStatus struct {
	ExitCode *int   `json:"exitCode,omitempty"`
	Signal   string `json:"signal,omitempty"`
}

// A terminalChunk is what a terminal printed next.
type terminalChunk struct {
	Kind       string `json:"sessionUpdate"`
	TerminalID string `json:"terminalId"`
	Data       []byte `json:"data"`
}

// A schemaNotice is information for the user that is no part of the conversation.
type schemaNotice struct {
	Kind        string `json:"sessionUpdate"`
	Severity    string `json:"severity"`
	Title       string `json:"title"`
	Description string `json:"description,omitempty"`
}

// Values of Notice.Severity.
const (
	info        = "info"
	warning     = "warning"
	schemaError = "error"
)

// The types of the Agent Client Protocol that Duet uses as an agent, in version 1
// (https://agentclientprotocol.com/protocol/v1/schema). Unknown members are ignored.

// The protocol's versions.
const (
	version1 = 1
	version2 = 2
)

// The methods of an agent.
const (
	initialize      = "initialize"
	authenticate    = "authenticate" // of version 1
	authLogin       = "auth/login"   // of version 2
	logout          = "logout"       // of version 1
	authLogout      = "auth/logout"  // of version 2
	sessionNew      = "session/new"
	sessionLoad     = "session/load" // of version 1
	sessionResume   = "session/resume"
	sessionFork     = "session/fork"
	sessionList     = "session/list"
	sessionClose    = "session/close"
	sessionDelete   = "session/delete"
	sessionPrompt   = "session/prompt"
	sessionSteering = "_session/steering" // an extension
	sessionCancel   = "session/cancel"
	terminalCancel  = "terminal/cancel"  // of version 2
	toolCallCancel  = "tool_call/cancel" // of version 2
	sessionSetMode  = "session/set_mode" // of version 1
	sessionSetValue = "session/set_config_option"
)

// The methods of a client.
const (
	sessionUpdate       = "session/update"
	requestPermission   = "session/request_permission"
	elicitationCreate   = "elicitation/create"
	elicitationComplete = "elicitation/complete"
	readTextFile        = "fs/read_text_file"
	writeTextFile       = "fs/write_text_file"
)

// How a request is taken back, by either side.
const (
	cancelRequest       = "$/cancel_request"
	cancelRequestMember = "requestId"
)

// Codes of errors beyond those of JSON-RPC.
const (
	codeAuthRequired     = -32000
	codeResourceNotFound = -32002
)
