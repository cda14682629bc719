package acpagent

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
