package schema

// A Message is a whole message, in version 2. It takes the place of what a client has of it.
type Message struct {
	Kind      string `json:"sessionUpdate"`
	MessageID string `json:"messageId"`
	Content   []any  `json:"content"` // content blocks
}

// A StateUpdate says whether the agent works in the foreground of a session, in version 2.
type StateUpdate struct {
	Kind       string `json:"sessionUpdate"`
	State      string `json:"state"`
	StopReason string `json:"stopReason,omitempty"` // of StateIdle
	Error      error  `json:"error,omitempty"`      // of StoppedByError: an error of JSON-RPC
	Usage      *Usage `json:"usage,omitempty"`
	Background []any  `json:"background"` // all of it, each a BackgroundWork
}

// Values of StateUpdate.State.
const (
	StateRunning        = "running"
	StateRequiresAction = "requires_action"
	StateIdle           = "idle"
)

// BackgroundWork is work that goes on while the session is idle.
type BackgroundWork struct {
	Type       string `json:"type"`
	TerminalID string `json:"terminalId,omitempty"`
	ToolCallID string `json:"toolCallId,omitempty"`
	ProcessID  string `json:"processId,omitempty"` // of WorkProcess
	Title      string `json:"title,omitempty"`     // of WorkProcess
}

// Values of BackgroundWork.Type. WorkProcess is Duet's own: a process of the agent that
// belongs to no terminal and no tool call that Duet knows.
const (
	WorkTerminal = "terminal"
	WorkToolCall = "tool_call"
	WorkProcess  = "_duet_process"
)

// A TerminalUpdate begins a terminal of the agent, or tells what has changed.
type TerminalUpdate struct {
	Kind       string          `json:"sessionUpdate"`
	TerminalID string          `json:"terminalId"`
	Command    string          `json:"command,omitempty"`
	Output     *TerminalOutput `json:"output,omitempty"`
	ExitStatus *ExitStatus     `json:"exitStatus,omitempty"`

	Capabilities *WorkCapabilities `json:"capabilities,omitempty"`
}

// WorkCapabilities say what a client may ask of a terminal or a tool call.
type WorkCapabilities struct {
	Cancel *Present `json:"cancel,omitempty"`
}

// A CancelWorkRequest is the parameters of terminal/cancel and tool_call/cancel.
type CancelWorkRequest struct {
	SessionID  string `json:"sessionId"`
	TerminalID string `json:"terminalId,omitempty"`
	ToolCallID string `json:"toolCallId,omitempty"`
}

// TerminalOutput is all that a terminal shows.
type TerminalOutput struct {
	Data []byte `json:"data"`
}

// An ExitStatus is how the program of a terminal ended.
type ExitStatus struct {
	ExitCode *int   `json:"exitCode,omitempty"`
	Signal   string `json:"signal,omitempty"`
}

// A TerminalChunk is what a terminal printed next.
type TerminalChunk struct {
	Kind       string `json:"sessionUpdate"`
	TerminalID string `json:"terminalId"`
	Data       []byte `json:"data"`
}

// A Notice is information for the user that is no part of the conversation.
type Notice struct {
	Kind        string `json:"sessionUpdate"`
	Severity    string `json:"severity"`
	Title       string `json:"title"`
	Description string `json:"description,omitempty"`
}

// Values of Notice.Severity.
const (
	Info    = "info"
	Warning = "warning"
	Error   = "error"
)
