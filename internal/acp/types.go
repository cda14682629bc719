package acp

// Methods of agents.
const (
	MethodInitialize      = "initialize"
	MethodAuthenticate    = "authenticate" // of version 1
	MethodAuthLogin       = "auth/login"   // of version 2
	MethodLogout          = "logout"       // of version 1
	MethodAuthLogout      = "auth/logout"  // of version 2
	MethodSessionNew      = "session/new"
	MethodSessionLoad     = "session/load" // of version 1; in version 2, session/resume with replayFrom
	MethodSessionResume   = "session/resume"
	MethodSessionFork     = "session/fork" // not stable yet
	MethodSessionClose    = "session/close"
	MethodSessionList     = "session/list"
	MethodSessionDelete   = "session/delete"
	MethodSessionPrompt   = "session/prompt"
	MethodSessionSteering = "_session/steering" // an extension of claude-agent-acp and codex-acp
	MethodSessionCancel   = "session/cancel"
	MethodSessionSetMode  = "session/set_mode"  // of version 1
	MethodSessionSetModel = "session/set_model" // of older agents
	MethodSessionSetValue = "session/set_config_option"
	MethodTerminalCancel  = "terminal/cancel"  // of version 2
	MethodToolCallCancel  = "tool_call/cancel" // of version 2
)

// Methods of clients. Those for files and terminals are of version 1.
const (
	MethodSessionUpdate     = "session/update"
	MethodRequestPermission = "session/request_permission"
	MethodElicit            = "elicitation/create"
	MethodElicitationDone   = "elicitation/complete" // a notification
	MethodReadTextFile      = "fs/read_text_file"
	MethodWriteTextFile     = "fs/write_text_file"
	MethodTerminalCreate    = "terminal/create"
	MethodTerminalOutput    = "terminal/output"
	MethodTerminalWait      = "terminal/wait_for_exit"
	MethodTerminalKill      = "terminal/kill"
	MethodTerminalRelease   = "terminal/release"
)

// The notification by which either side cancels a request, and the member of its parameters with
// the id of the request.
const (
	MethodCancelRequest = "$/cancel_request"
	CancelRequestMember = "requestId"
)

// An Empty is an empty result, or the value of a capability without details.
type Empty struct{}

// A Variable is a variable of an environment, or a header.
type Variable struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// A SessionParams names a session, as session/close and session/cancel do.
type SessionParams struct {
	SessionID string `json:"sessionId"`
}

// ReadTextFileParams are the parameters of fs/read_text_file. Line and Limit count lines, from 1.
type ReadTextFileParams struct {
	SessionID string `json:"sessionId"`
	Path      string `json:"path"`
	Line      *int   `json:"line,omitempty"`
	Limit     *int   `json:"limit,omitempty"`
}

// ReadTextFileResult is the text.
type ReadTextFileResult struct {
	Content string `json:"content"`
}

// WriteTextFileParams are the parameters of fs/write_text_file.
type WriteTextFileParams struct {
	SessionID string `json:"sessionId"`
	Path      string `json:"path"`
	Content   string `json:"content"`
}

// TerminalCreateParams are the parameters of terminal/create.
type TerminalCreateParams struct {
	SessionID       string     `json:"sessionId"`
	Command         string     `json:"command"`
	Args            []string   `json:"args,omitempty"`
	Env             []Variable `json:"env,omitempty"`
	CWD             *string    `json:"cwd,omitempty"`
	OutputByteLimit *int       `json:"outputByteLimit,omitempty"`
}

// TerminalParams name a terminal.
type TerminalParams struct {
	SessionID  string `json:"sessionId,omitempty"`
	TerminalID string `json:"terminalId"`
}

// TerminalOutputResult is the output of a terminal.
type TerminalOutputResult struct {
	Output     string      `json:"output"`
	Truncated  bool        `json:"truncated"`
	ExitStatus *ExitStatus `json:"exitStatus,omitempty"`
}

// An ExitStatus is how a program has ended.
type ExitStatus struct {
	ExitCode *int   `json:"exitCode,omitempty"`
	Signal   string `json:"signal,omitempty"`
}
