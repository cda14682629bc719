package catalog

import (
	"context"
	"encoding/json"

	"github.com/duet-rpc/duet-rpc/internal/domain"
)

// A Daemon is what an executor may ask of the hub. All methods may be called
// from any goroutine. Each is authenticated by the session token in its
// parameters; one that has none is taken of the executor alone that was given what
// it names.
type Daemon interface {
	// GetAPIKey returns a key. It may wait for a human to type it.
	GetAPIKey(context.Context, GetAPIKeyParams) (GetAPIKeyResult, error)
	// RequestPermission waits until somebody has decided, for as long as ctx
	// lasts.
	RequestPermission(context.Context, RequestPermissionParams) (RequestPermissionResult, error)
	GetExecutionContext(context.Context, GetExecutionContextParams) (GetExecutionContextResult, error)
	CreateMessage(context.Context, CreateMessageParams) (CreateMessageResult, error)
	// BeginTurn starts a task for an agent-initiated turn, when no other task of the
	// conversation runs. The hub then calls ExecutePrompt for that task, with Unprompted.
	BeginTurn(context.Context, BeginTurnParams) (BeginTurnResult, error)

	// The reports are notifications: what is wrong with one is logged.
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
	// CommandOutput returns when the output has been taken: the command is not read until then.
	CommandOutput(context.Context, CommandOutputParams) error
}

// GetAPIKeyParams ask for the key of a service.
type GetAPIKeyParams struct {
	SessionToken  string `json:"session_token"`
	Service       string `json:"service,omitempty" doc:"anthropic, openai, google, github, or a name of the configuration."`
	CredentialKey string `json:"credential_key,omitempty" doc:"Another name for service, such as ANTHROPIC_API_KEY."`
}

// GetAPIKeyResult holds a key. It is never logged and never stored.
type GetAPIKeyResult struct {
	APIKey    string `json:"api_key"`
	ExpiresAt int64  `json:"expires_at,omitempty" doc:"Milliseconds since 1970."`
}

// RequestPermissionParams ask whether a tool may run.
type RequestPermissionParams struct {
	SessionToken string          `json:"session_token"`
	ToolName     string          `json:"tool_name"`
	ToolInput    json.RawMessage `json:"tool_input,omitempty"`
	ToolParams   json.RawMessage `json:"tool_params,omitempty" doc:"Another name for tool_input."`

	// Ours.
	TaskID     string             `json:"task_id,omitempty"`
	ToolUseID  string             `json:"tool_use_id,omitempty" doc:"The agent's own id of the tool call."`
	ParentID   string             `json:"parent_id,omitempty" doc:"The tool call of the sub-agent that asks."`
	Title      string             `json:"title,omitempty" doc:"What the tool is about to do, in words."`
	ToolKind   string             `json:"tool_kind,omitempty" doc:"read, edit, delete, move, search, execute, think, fetch or other."`
	Paths      []string           `json:"paths,omitempty" doc:"The files that it touches."`
	Diffs      []domain.Diff      `json:"diffs,omitempty" doc:"What it would change."`
	Plan       string             `json:"plan,omitempty" doc:"What the agent would do next, where it asks to leave its plan mode."`
	Details    string             `json:"details,omitempty" doc:"What the agent says about the tool call beside its title and input: a text for people."`
	Options    []PermissionOption `json:"options,omitempty" doc:"The answers that the agent offers."`
	InputFixed bool               `json:"input_fixed,omitempty" doc:"A changed input would not be heeded: the tool runs with this one, or not at all."`
	Unasked    []string           `json:"unasked,omitempty" doc:"The agent has not asked for permission: only whether the policy denies this is to be told, under each of these names of tools."`
	NameByKind bool               `json:"name_by_kind,omitempty" doc:"The agent has not named the tool: tool_name is made of its kind."`
	IsQuestion bool               `json:"is_question,omitempty" doc:"The agent asks a human something, rather than for permission; the answer is an option or a text."`

	QuestionID string `json:"question_id,omitempty" doc:"The executor's own name for the question. To ask again after the agent has changed the tool call, send the request again with this name and a higher revision: the earlier question is closed, and its request is answered with cancelled."`
	Revision   int    `json:"revision,omitempty" doc:"Counts the requests with one question_id, from 0."`

	Elicitation *Elicitation `json:"elicitation,omitempty" doc:"The agent asks a human to fill in a form or to open an address; title is its message, and tool_name is not needed."`
}

// An Elicitation is what an agent asks a human to fill in or to open. Ours; the
// modes are those of the Agent Client Protocol.
type Elicitation struct {
	Mode   string          `json:"mode" doc:"form or url."`
	Schema json.RawMessage `json:"schema,omitempty" doc:"Of a form: a flat object of JSON Schema."`
	URL    string          `json:"url,omitempty" doc:"What is to be opened."`
	ID     string          `json:"elicitation_id,omitempty" doc:"The agent's own id of what is to be opened."`
}

// A PermissionOption is an answer that an agent offers. Ours; the kinds are
// those of the Agent Client Protocol.
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
	UpdatedInput json.RawMessage `json:"updated_input,omitempty" doc:"The input as a human changed it."`
	OptionID     string          `json:"option_id,omitempty" doc:"The option that was chosen."`
	Comment      string          `json:"comment,omitempty" doc:"What the human said."`
	Cancelled    bool            `json:"cancelled,omitempty" doc:"The run was ended before anybody decided."`
	Dismissed    bool            `json:"dismissed,omitempty" doc:"With cancelled: the run goes on; a person has put the question away without an answer."`
	ApprovalID   string          `json:"approval_id,omitempty" doc:"Of a human's answer: what to name in the event permission_taken."`
	Content      json.RawMessage `json:"content,omitempty" doc:"The values of a form, which fit its schema."`
}

// GetExecutionContextParams ask what a run stands on.
type GetExecutionContextParams struct {
	SessionToken string `json:"session_token"`
}

// GetExecutionContextResult is the conversation so far, and what belongs to it.
type GetExecutionContextResult struct {
	SessionID    string       `json:"session_id"`
	TaskID       string       `json:"task_id"`
	Messages     []Message    `json:"messages"`
	MCPServers   []MCPServer  `json:"mcp_servers"`
	ContextFiles []string     `json:"context_files"`
	ModelConfig  *ModelConfig `json:"model_config,omitempty"`

	// Ours.
	NativeSessionID       string            `json:"native_session_id,omitempty" doc:"The agent's own session, to be resumed."`
	ForkNativeSessionID   string            `json:"fork_native_session_id,omitempty" doc:"The agent's own session of which the conversation is a fork, just as far as that session goes: an agent that can fork it need not be told what was said."`
	SystemPrompt          string            `json:"system_prompt,omitempty"`
	AdditionalDirectories []string          `json:"additional_directories,omitempty"`
	AgentMode             string            `json:"agent_mode,omitempty" doc:"The mode that the agent was in last. It goes on in it, whatever permission_mode says; one that it does not have any more is ignored."`
	Options               map[string]string `json:"options,omitempty" doc:"Values of the agent's own options, by their ids, that people asked for."`
}

// A Message is one of a conversation.
type Message struct {
	Role    string `json:"role" doc:"user or assistant."`
	Content string `json:"content"`
	Type    string `json:"type,omitempty" doc:"message, tool_call or tool_result."`
}

// An MCPServer is one that the agent is to use.
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

// CreateMessageParams put a message into the conversation.
type CreateMessageParams struct {
	SessionToken string        `json:"session_token,omitempty"`
	TaskID       string        `json:"task_id"`
	Message      CreateMessage `json:"message"`
}

// CreateMessage is the message of [CreateMessageParams].
type CreateMessage struct {
	Role    string          `json:"role" doc:"user or assistant."`
	Content json.RawMessage `json:"content" doc:"A string, or whatever the type asks for."`
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
	Sequence     int64           `json:"sequence" doc:"Rises by one with each report of a task, from 1. One that came before is ignored."`
	Timestamp    int64           `json:"timestamp,omitempty" doc:"Milliseconds since 1970."`
	EventType    string          `json:"event_type"`
	EventData    json.RawMessage `json:"event_data,omitempty"`
}

// ReportProgressParams report how far a task is.
type ReportProgressParams struct {
	SessionToken string   `json:"session_token"`
	TaskID       string   `json:"task_id"`
	Progress     Progress `json:"progress"`
}

// Progress is how far a task is.
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

// ReportedError is what went wrong.
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

// ReportSessionParams report what the agent of a conversation tells of its session
// while no prompt runs. Ours.
type ReportSessionParams struct {
	SessionID string  `json:"session_id" doc:"The conversation, as execute_prompt has named it."`
	TaskID    string  `json:"task_id" doc:"The task that the agent worked on last."`
	Session   Session `json:"session" doc:"The parts that changed."`
}

// ReportLateParams report what an agent tells of a task that has ended: the rest of a message,
// an update of a tool call, a notice or usage. Ours.
type ReportLateParams struct {
	SessionID string          `json:"session_id" doc:"The conversation, as execute_prompt has named it."`
	TaskID    string          `json:"task_id" doc:"The task of the message or of the tool call, or else the last one of the conversation."`
	EventType string          `json:"event_type" doc:"content_block_delta, thinking_chunk, tool_update, tool_result, notice, compaction or usage. Text is added to the last message of the task."`
	EventData json.RawMessage `json:"event_data"`
}

// BeginTurnParams ask for a task for an agent-initiated turn. Ours.
type BeginTurnParams struct {
	SessionID string       `json:"session_id" doc:"The conversation, as execute_prompt has named it."`
	TaskID    string       `json:"task_id" doc:"The task that the agent worked on last."`
	Trigger   *TurnTrigger `json:"trigger,omitempty" doc:"Why the agent goes on, where it tells that."`
}

// A TurnTrigger is why an agent-initiated turn starts. Ours.
type TurnTrigger struct {
	Kind  string `json:"kind" doc:"The agent's own word, such as background_notification."`
	Label string `json:"label,omitempty" doc:"What has ended, such as the command of a background task."`
}

// BeginTurnResult names the task that has begun. Ours.
type BeginTurnResult struct {
	TaskID string `json:"task_id"`
}

// TerminalStartedParams report that an agent has started a program in a
// terminal of its own, which people can watch. Ours.
type TerminalStartedParams struct {
	TerminalID string   `json:"terminal_id"`
	TaskID     string   `json:"task_id,omitempty" doc:"The task whose agent runs it, if it works on one."`
	PID        int      `json:"pid,omitempty"`
	Program    string   `json:"program"`
	Args       []string `json:"args,omitempty"`
	CWD        string   `json:"cwd,omitempty"`
}

// TerminalOutputParams report what a terminal printed. Ours.
type TerminalOutputParams struct {
	TerminalID string `json:"terminal_id"`
	TaskID     string `json:"task_id,omitempty" doc:"The task whose agent runs it; absent for a terminal of a human."`
	Data       string `json:"data"`
	Encoding   string `json:"encoding" doc:"utf-8, or base64 where the data is not."`
}

// TerminalExitParams report that a terminal's program has ended.
type TerminalExitParams struct {
	TerminalID string `json:"terminal_id"`
	TaskID     string `json:"task_id,omitempty"`
	ExitCode   int    `json:"exit_code"`
	Signal     string `json:"signal,omitempty"`
}

// EditorFiles are files as the editors have them that began tasks: with what is not
// saved. Ours. Its method may be called from any goroutine.
type EditorFiles interface {
	// ReadEditorFile is taken of the executor alone that was given the task. Its
	// error says that there is nobody to ask.
	ReadEditorFile(context.Context, ReadEditorFileParams) (ReadEditorFileResult, error)
}

// ReadEditorFileParams ask for a file.
type ReadEditorFileParams struct {
	TaskID string `json:"task_id"`
	Path   string `json:"path" doc:"Absolute."`
}

// ReadEditorFileResult is the whole text of a file.
type ReadEditorFileResult struct {
	Found bool   `json:"found" doc:"False: the editor does not have it, and the disk counts."`
	Text  string `json:"text"`
}
