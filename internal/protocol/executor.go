package protocol

import (
	"encoding/json"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
)

type ExecuteParams struct {
	SessionToken   string         `json:"session_token,omitempty" doc:"Optional; one that is wrong, or of another conversation, is refused."`
	SessionID      string         `json:"session_id,omitempty" doc:"The caller's own id of the conversation, or any id of one that there is. Prompts with the same one follow each other."`
	TaskID         string         `json:"task_id,omitempty" doc:"The caller's own id of this prompt; it must be new, and not of the form task-0001, which is ours."`
	Prompt         string         `json:"prompt" doc:"What the agent is to do."`
	CWD            string         `json:"cwd,omitempty" doc:"The directory in which the agent works; absent: the project's root."`
	Tools          []string       `json:"tools,omitempty" doc:"The tools that are allowed; absent or empty: all."`
	PermissionMode PermissionMode `json:"permission_mode,omitempty" doc:"What the agent may do without asking; absent: as in the conversation so far. A plain command cannot be held to plan, which is refused."`
	TimeoutMS      int64          `json:"timeout_ms,omitempty" doc:"How long it may run, in milliseconds; 300000 unless above 0."`
	Stream         *bool          `json:"stream,omitempty" doc:"False: subscribers get whole messages, no deltas. Default true."`
	AgenticTool    string         `json:"agentic_tool,omitempty" doc:"Another name for agent; claude-code means claude."`
	Agent          string         `json:"agent,omitempty" doc:"The agent's name in the configuration; absent: the default one."`
	PromptContent
}

type ExecuteResult struct {
	Status       string                  `json:"status" doc:"completed, failed or cancelled."`
	MessageCount int                     `json:"message_count" doc:"How many messages the agent sent."`
	TokenUsage   *catalog.TokenUsage     `json:"token_usage,omitempty"`
	Error        *catalog.ExecutionError `json:"error,omitempty"`
	StopReason   string                  `json:"stop_reason,omitempty" doc:"The agent's own."`
	Agent        string                  `json:"agent" doc:"The agent that was taken."`
	SessionID    string                  `json:"session_id" doc:"The caller's, else ours."`
	TaskID       string                  `json:"task_id" doc:"The caller's, else ours."`
}

type StopTaskParams struct {
	SessionToken string `json:"session_token,omitempty" doc:"Optional; one that is wrong, or of another conversation, is refused."`
	TaskID       string `json:"task_id" doc:"The task; every id of the run will do."`
	Reason       string `json:"reason,omitempty" doc:"Why: user_cancelled, timeout, ..."`
}

func (p StopTaskParams) Check() error { return NotEmpty("task_id", p.TaskID) }

type StopTaskResult struct {
	Stopped bool   `json:"stopped" doc:"Its end has begun."`
	Message string `json:"message,omitempty" doc:"Why not."`
}

type CreateMessageParams struct {
	SessionToken string  `json:"session_token,omitempty" doc:"Optional; one that is wrong, or of another conversation, is refused."`
	TaskID       string  `json:"task_id" doc:"The task; every id of the run will do."`
	Message      Message `json:"message" doc:"The message."`
}

type Message struct {
	Role    MessageRole     `json:"role" doc:"Who says it."`
	Content json.RawMessage `json:"content" doc:"A string, or whatever the type asks for."`
	Type    string          `json:"type,omitempty" doc:"What kind of message it is; absent: message."`
}

// A MessageRole is who says a message.
type MessageRole string

// Accepted implements schema.Enum.
func (MessageRole) Accepted() []string { return []string{"user", "assistant"} }

func (p CreateMessageParams) Check() error { return NotEmpty("task_id", p.TaskID) }

type CreateMessageResult struct {
	MessageID string `json:"message_id"`
	CreatedAt string `json:"created_at"`
}

type ProvideSecretParams struct {
	RequestID string `json:"request_id" doc:"What the event secret_requested named."`
	Service   string `json:"service,omitempty" doc:"The service that the secret is for."`
	Secret    string `json:"secret" doc:"The secret; empty: there is none."`
}

func (p ProvideSecretParams) Check() error { return NotEmpty("request_id", p.RequestID) }
