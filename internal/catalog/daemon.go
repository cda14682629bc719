package catalog

import (
	"context"
	"encoding/json"

	"github.com/duet-rpc/duet-rpc/internal/domain"
)

// A Daemon is the hub's interface for executors. Its methods may be called from any goroutine. The
// session token in the parameters authenticates a call. Without one, the hub accepts a call only
// from the executor that got the task, terminal or command that it names.
type Daemon interface {
	// GetAPIKey returns a key. It may wait for a person to type it.
	GetAPIKey(context.Context, GetAPIKeyParams) (GetAPIKeyResult, error)
	// RequestPermission waits for a decision until ctx ends.
	RequestPermission(context.Context, RequestPermissionParams) (RequestPermissionResult, error)
	GetExecutionContext(context.Context, GetExecutionContextParams) (GetExecutionContextResult, error)
	CreateMessage(context.Context, CreateMessageParams) (CreateMessageResult, error)
	// BeginTurn starts a task for an agent-initiated turn, when no other task of the
	// session runs. The hub then calls ExecutePrompt for that task, with Unprompted.
	BeginTurn(context.Context, BeginTurnParams) (BeginTurnResult, error)

	// Reports are notifications; the hub logs errors.
	ReportMessage(context.Context, ReportMessageParams) error
	ReportProgress(context.Context, ReportProgressParams) error
	ReportError(context.Context, ReportErrorParams) error
	ReportCompletion(context.Context, ReportCompletionParams) error
	ReportSession(context.Context, ReportSessionParams) error
	// ReportLate reports an event of a task that has ended.
	ReportLate(context.Context, ReportLateParams) error
	TerminalStarted(context.Context, TerminalStartedParams) error
	TerminalOutput(context.Context, TerminalOutputParams) error
	TerminalExit(context.Context, TerminalExitParams) error
	CommandStarted(context.Context, CommandStartedParams) error
	// CommandOutput returns when the hub has taken the output. The executor does not read the
	// command until then.
	CommandOutput(context.Context, CommandOutputParams) error
}

// GetAPIKeyParams request the key of a service.
type GetAPIKeyParams struct {
	SessionToken  string `json:"session_token"`
	Service       string `json:"service,omitempty" doc:"anthropic, openai, google, github, or a name from the configuration."`
	CredentialKey string `json:"credential_key,omitempty" doc:"Alias of service, such as ANTHROPIC_API_KEY."`
}

// GetAPIKeyResult has a key, which is never logged or stored.
type GetAPIKeyResult struct {
	APIKey    string `json:"api_key"`
	ExpiresAt int64  `json:"expires_at,omitempty" doc:"Milliseconds since 1970."`
}

// RequestPermissionParams ask whether a tool may run.
type RequestPermissionParams struct {
	SessionToken string          `json:"session_token"`
	ToolName     string          `json:"tool_name"`
	ToolInput    json.RawMessage `json:"tool_input,omitempty"`
	ToolParams   json.RawMessage `json:"tool_params,omitempty" doc:"Alias of tool_input."`

	// Ours.
	TaskID     string             `json:"task_id,omitempty"`
	ToolUseID  string             `json:"tool_use_id,omitempty" doc:"The agent's id of the tool call."`
	ParentID   string             `json:"parent_id,omitempty" doc:"The tool call of the sub-agent that asks."`
	Title      string             `json:"title,omitempty" doc:"What the tool would do, for people."`
	ToolKind   string             `json:"tool_kind,omitempty" doc:"read, edit, delete, move, search, execute, think, fetch or other."`
	Paths      []string           `json:"paths,omitempty" doc:"The files that the call touches."`
	Diffs      []domain.Diff      `json:"diffs,omitempty" doc:"The changes that it would make."`
	Plan       string             `json:"plan,omitempty" doc:"The agent's plan, if it asks to leave its plan mode."`
	Details    string             `json:"details,omitempty" doc:"The agent's text about the tool call, in addition to title and input, for people."`
	Options    []PermissionOption `json:"options,omitempty" doc:"The answers that the agent offers."`
	InputFixed bool               `json:"input_fixed,omitempty" doc:"A changed input would have no effect: the tool runs with this input or not at all."`
	Unasked    []string           `json:"unasked,omitempty" doc:"The agent has not asked for permission. The hub only checks whether the policy denies the call, under each of these tool names."`
	NameByKind bool               `json:"name_by_kind,omitempty" doc:"The agent has not named the tool: tool_name is derived from its kind."`
	IsQuestion bool               `json:"is_question,omitempty" doc:"The agent asks a question, not for permission. The answer is an option or a text."`

	QuestionID string `json:"question_id,omitempty" doc:"The executor's id of the question. If the agent changes the tool call, send the request again with this id and a higher revision. The hub closes the earlier question and answers its request with cancelled."`
	Revision   int    `json:"revision,omitempty" doc:"Counts the requests with the same question_id, from 0."`

	Elicitation *Elicitation `json:"elicitation,omitempty" doc:"The agent asks a person to fill in a form or open an address. title is its message, and tool_name is optional."`
}

// An Elicitation is a form to fill in or an address to open. Ours; the modes are those of the Agent
// Client Protocol.
type Elicitation struct {
	Mode   string          `json:"mode" doc:"form or url."`
	Schema json.RawMessage `json:"schema,omitempty" doc:"form: a flat JSON Schema object."`
	URL    string          `json:"url,omitempty" doc:"The address to open."`
	ID     string          `json:"elicitation_id,omitempty" doc:"The agent's id of the request to open the address."`
}

// A PermissionOption is one of the agent's answers to choose from. Ours; the kinds are those of the
// Agent Client Protocol.
type PermissionOption struct {
	OptionID string `json:"option_id"`
	Name     string `json:"name"`
	Kind     string `json:"kind" doc:"allow_once, allow_always, reject_once or reject_always."`
}

// RequestPermissionResult is the decision.
type RequestPermissionResult struct {
	Approved bool   `json:"approved"`
	Reason   string `json:"reason,omitempty" doc:"mode=..., rule=..., user_approved, user_denied, timeout or cancelled."`

	// Ours.
	UpdatedInput json.RawMessage `json:"updated_input,omitempty" doc:"The input as the user changed it."`
	OptionID     string          `json:"option_id,omitempty" doc:"The chosen option."`
	Comment      string          `json:"comment,omitempty" doc:"The user's comment."`
	Cancelled    bool            `json:"cancelled,omitempty" doc:"The run ended before a decision."`
	Dismissed    bool            `json:"dismissed,omitempty" doc:"With cancelled: the run continues; a person closed the question without an answer."`
	ApprovalID   string          `json:"approval_id,omitempty" doc:"For a person's answer: the id for the event permission_taken."`
	Content      json.RawMessage `json:"content,omitempty" doc:"The values of a form, which fit its schema."`
}

// GetExecutionContextParams request the context of a turn.
type GetExecutionContextParams struct {
	SessionToken string `json:"session_token"`

	// Ours.
	Unanswered bool `json:"unanswered,omitempty" doc:"Return as messages only those of the user after the agent's last activity. An agent that still has its session needs no others, and the hub need not read the whole conversation."`
}

// GetExecutionContextResult has the session's transcript and settings.
type GetExecutionContextResult struct {
	SessionID    string       `json:"session_id"`
	TaskID       string       `json:"task_id"`
	Messages     []Message    `json:"messages"`
	MCPServers   []MCPServer  `json:"mcp_servers"`
	ContextFiles []string     `json:"context_files"`
	ModelConfig  *ModelConfig `json:"model_config,omitempty"`

	// Ours.
	NativeSessionID       string            `json:"native_session_id,omitempty" doc:"The agent's own session to resume."`
	ForkNativeSessionID   string            `json:"fork_native_session_id,omitempty" doc:"The agent's own session that the conversation is a fork of, at that session's end. An agent that can fork it needs no transcript."`
	SystemPrompt          string            `json:"system_prompt,omitempty"`
	AdditionalDirectories []string          `json:"additional_directories,omitempty"`
	AgentMode             string            `json:"agent_mode,omitempty" doc:"The agent's last mode. The agent continues in it, whatever permission_mode says. A mode that the agent no longer has is ignored."`
	Options               map[string]string `json:"options,omitempty" doc:"Requested values of the agent's options, by option id."`
}

// A Message is a message of a session.
type Message struct {
	Role    string `json:"role" doc:"user or assistant."`
	Content string `json:"content"`
	Type    string `json:"type,omitempty" doc:"message, tool_call or tool_result."`
}

// EditorServer is the name of the MCP server with the tools of the user's editor, which Duet gives
// every agent. No other server may have it, because rules do not ask about its tools.
const EditorServer = "duet-editor"

// An MCPServer is a server for the agent.
type MCPServer struct {
	Name    string            `json:"name"`
	Command string            `json:"command,omitempty"`
	Args    []string          `json:"args,omitempty"`
	Env     map[string]string `json:"env,omitempty"`

	// Ours.
	Type    string            `json:"type,omitempty" doc:"stdio (the default), http or sse."`
	URL     string            `json:"url,omitempty"`
	Headers map[string]string `json:"headers,omitempty"`
}

// ModelConfig chooses a model.
type ModelConfig struct {
	Model          string `json:"model"`
	ThinkingTokens int    `json:"thinking_tokens,omitempty"`
}

// CreateMessageParams add a message to the session.
type CreateMessageParams struct {
	SessionToken string        `json:"session_token,omitempty"`
	TaskID       string        `json:"task_id"`
	Message      CreateMessage `json:"message"`
}

// CreateMessage is the message of [CreateMessageParams].
type CreateMessage struct {
	Role    string          `json:"role" doc:"user or assistant."`
	Content json.RawMessage `json:"content" doc:"A string, or the value that the type requires."`
	Type    string          `json:"type,omitempty"`
}

// CreateMessageResult names the message that was created.
type CreateMessageResult struct {
	MessageID string `json:"message_id"`
	CreatedAt string `json:"created_at"`
}

// ReportMessageParams report one event of an agent.
type ReportMessageParams struct {
	SessionToken string          `json:"session_token"`
	TaskID       string          `json:"task_id"`
	Sequence     int64           `json:"sequence" doc:"Increases by one with each report of a task, from 1. A number that was used before is ignored."`
	Timestamp    int64           `json:"timestamp,omitempty" doc:"Milliseconds since 1970."`
	EventType    string          `json:"event_type"`
	EventData    json.RawMessage `json:"event_data,omitempty"`
}

// ReportProgressParams report the progress of a task.
type ReportProgressParams struct {
	SessionToken string   `json:"session_token"`
	TaskID       string   `json:"task_id"`
	Progress     Progress `json:"progress"`
}

// Progress is the progress of a task.
type Progress struct {
	Percent        *float64 `json:"percent,omitempty" doc:"0 to 100."`
	Message        string   `json:"message,omitempty"`
	CompletedSteps *int     `json:"completed_steps,omitempty"`
	TotalSteps     *int     `json:"total_steps,omitempty"`
}

// ReportErrorParams report an error that does not end the task.
type ReportErrorParams struct {
	SessionToken string        `json:"session_token"`
	TaskID       string        `json:"task_id"`
	Error        ReportedError `json:"error"`
}

// ReportedError is an error that an agent reports.
type ReportedError struct {
	Code    string          `json:"code" doc:"In capitals, such as TOOL_FAILED."`
	Message string          `json:"message"`
	Details json.RawMessage `json:"details,omitempty"`
}

// ReportCompletionParams report the end of a task.
type ReportCompletionParams struct {
	SessionToken string          `json:"session_token"`
	TaskID       string          `json:"task_id"`
	Status       string          `json:"status" doc:"completed, failed or cancelled."`
	TokenUsage   *TokenUsage     `json:"token_usage,omitempty"`
	Error        *ExecutionError `json:"error,omitempty"`
}

// ReportSessionParams report changes of the agent's session while no prompt runs. Ours.
type ReportSessionParams struct {
	SessionID string  `json:"session_id" doc:"The conversation, as in execute_prompt."`
	TaskID    string  `json:"task_id" doc:"The agent's last task."`
	Session   Session `json:"session" doc:"The parts that changed."`
}

// ReportLateParams report an event of a task that has ended: the rest of a message, an update of a
// tool call, a notice or usage. Ours.
type ReportLateParams struct {
	SessionID string          `json:"session_id" doc:"The conversation, as in execute_prompt."`
	TaskID    string          `json:"task_id" doc:"The task of the message or tool call, or the conversation's last task."`
	EventType string          `json:"event_type" doc:"content_block_delta, thinking_chunk, tool_update, tool_result, notice, compaction or usage. Text is appended to the last message of the task."`
	EventData json.RawMessage `json:"event_data"`
}

// BeginTurnParams request a task for an agent-initiated turn. Ours.
type BeginTurnParams struct {
	SessionID string       `json:"session_id" doc:"The conversation, as in execute_prompt."`
	TaskID    string       `json:"task_id" doc:"The agent's last task."`
	Trigger   *TurnTrigger `json:"trigger,omitempty" doc:"Why the agent continues, if it reports that."`
}

// A TurnTrigger is why an agent-initiated turn starts. Ours.
type TurnTrigger struct {
	Kind  string `json:"kind" doc:"The agent's own word, such as background_notification."`
	Label string `json:"label,omitempty" doc:"What has ended, such as the command of a background task."`
}

// BeginTurnResult names the new task. Ours.
type BeginTurnResult struct {
	TaskID string `json:"task_id"`
}

// TerminalStartedParams report that an agent runs a program in a terminal of its own, which users
// can watch. Ours.
type TerminalStartedParams struct {
	TerminalID string   `json:"terminal_id"`
	TaskID     string   `json:"task_id,omitempty" doc:"The task whose agent runs it, if any."`
	PID        int      `json:"pid,omitempty"`
	Program    string   `json:"program"`
	Args       []string `json:"args,omitempty"`
	CWD        string   `json:"cwd,omitempty"`
}

// TerminalOutputParams report output of a terminal. Ours.
type TerminalOutputParams struct {
	TerminalID string `json:"terminal_id"`
	TaskID     string `json:"task_id,omitempty" doc:"The task whose agent runs it. Absent for a user's terminal."`
	Data       string `json:"data"`
	Encoding   string `json:"encoding" doc:"utf-8, or base64 if the data is not UTF-8."`
}

// TerminalExitParams report that a terminal's program has ended.
type TerminalExitParams struct {
	TerminalID string `json:"terminal_id"`
	TaskID     string `json:"task_id,omitempty"`
	ExitCode   int    `json:"exit_code"`
	Signal     string `json:"signal,omitempty"`
}

// EditorFiles reads files from the editors that started tasks, with unsaved changes. Ours. Its
// method may be called from any goroutine.
type EditorFiles interface {
	// ReadEditorFile is accepted only from the executor that got the task. Its error means that no
	// editor can be asked.
	ReadEditorFile(context.Context, ReadEditorFileParams) (ReadEditorFileResult, error)
}

// ReadEditorFileParams request a file.
type ReadEditorFileParams struct {
	TaskID string `json:"task_id"`
	Path   string `json:"path" doc:"Absolute."`
}

// ReadEditorFileResult is the whole text of a file.
type ReadEditorFileResult struct {
	Found bool   `json:"found" doc:"false: the editor does not have the file; read it from the disk."`
	Text  string `json:"text"`
}
