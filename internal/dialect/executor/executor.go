// Package executor has the dialect of the executor catalog's clients (specification 002): execute_prompt
// and its family, over the native methods of package protocol. See docs/protocol.md, "Dialects".
package executor

import (
	"cmp"
	"encoding/json"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/protocol"
)

// StatusOf returns the catalog's name of a final state.
func StatusOf(s domain.State) string {
	switch s {
	case domain.Completed:
		return catalog.StatusCompleted
	case domain.Failed, domain.TimedOut:
		return catalog.StatusFailed
	case domain.Cancelled, domain.Interrupted:
		return catalog.StatusCancelled
	}
	return ""
}

type ExecuteParams struct {
	SessionToken   string                  `json:"session_token,omitempty" doc:"Optional. An invalid token, or that of another conversation, is refused."`
	SessionID      string                  `json:"session_id,omitempty" doc:"The caller's id of the conversation, or any id of an existing one. Prompts with the same id run one after the other."`
	TaskID         string                  `json:"task_id,omitempty" doc:"The caller's id of this prompt. It must be new, and must not have the form task-0001."`
	Prompt         string                  `json:"prompt" doc:"The prompt."`
	CWD            string                  `json:"cwd,omitempty" doc:"The agent's working directory. Default: the project's root."`
	Tools          []string                `json:"tools,omitempty" doc:"The allowed tools. Absent or empty: all."`
	PermissionMode protocol.PermissionMode `json:"permission_mode,omitempty" doc:"What the agent may do without asking. Absent: as in the conversation so far. plan is refused for a plain command."`
	TimeoutMS      int64                   `json:"timeout_ms,omitempty" doc:"Time limit in milliseconds. Default 300000, also for values below 1."`
	Stream         *bool                   `json:"stream,omitempty" doc:"false: subscribers get complete messages and no deltas. Default true."`
	AgenticTool    string                  `json:"agentic_tool,omitempty" doc:"Alias of agent; claude-code means claude."`
	Agent          string                  `json:"agent,omitempty" doc:"The agent's name in the configuration. Default: the default agent."`
	protocol.PromptContent
}

type ExecuteResult struct {
	Status       string                  `json:"status" doc:"completed, failed or cancelled."`
	MessageCount int                     `json:"message_count" doc:"Number of messages from the agent."`
	TokenUsage   *catalog.TokenUsage     `json:"token_usage,omitempty"`
	Error        *catalog.ExecutionError `json:"error,omitempty"`
	StopReason   string                  `json:"stop_reason,omitempty" doc:"The agent's stop reason."`
	Agent        string                  `json:"agent" doc:"The agent that runs the prompt."`
	SessionID    string                  `json:"session_id" doc:"The caller's id, or Duet's if it gave none."`
	TaskID       string                  `json:"task_id" doc:"The caller's id, or Duet's if it gave none."`
}

type StopTaskParams struct {
	SessionToken string `json:"session_token,omitempty" doc:"Optional. An invalid token, or that of another conversation, is refused."`
	TaskID       string `json:"task_id" doc:"The task, by any id of the run."`
	Reason       string `json:"reason,omitempty" doc:"user_cancelled, timeout, ..."`
}

func (p StopTaskParams) Check() error { return protocol.NotEmpty("task_id", p.TaskID) }

type StopTaskResult struct {
	Stopped bool   `json:"stopped" doc:"The task is being stopped."`
	Message string `json:"message,omitempty" doc:"Why it was not stopped."`
}

type CreateMessageParams struct {
	SessionToken string  `json:"session_token,omitempty" doc:"Optional. An invalid token, or that of another conversation, is refused."`
	TaskID       string  `json:"task_id" doc:"The task, by any id of the run."`
	Message      Message `json:"message" doc:"The message."`
}

type Message struct {
	Role    MessageRole     `json:"role" doc:"The author of the message."`
	Content json.RawMessage `json:"content" doc:"A string, or the value that the type requires."`
	Type    string          `json:"type,omitempty" doc:"The kind of message. Default: message."`
}

// A MessageRole is the author of a message.
type MessageRole string

// Accepted implements schema.Enum.
func (MessageRole) Accepted() []string { return []string{"user", "assistant"} }

func (p CreateMessageParams) Check() error { return protocol.NotEmpty("task_id", p.TaskID) }

type CreateMessageResult struct {
	MessageID string `json:"message_id"`
	CreatedAt string `json:"created_at"`
}

// ExecutionError returns why a run failed, for the executor catalog. Neither the message nor the
// code is ever empty.
func ExecutionError(r domain.Turn) (message, code string) {
	byDefault := "EXECUTOR_ERROR"
	if r.State == domain.TimedOut {
		byDefault = "TIMEOUT"
	}
	return cmp.Or(protocol.ErrorText(r), "the agent failed and did not say why"), cmp.Or(r.ErrorCode, byDefault)
}

// AgentOfTool returns the agent that the executor catalog calls by a tool's name.
func AgentOfTool(tool string) string {
	if tool == "claude-code" {
		return "claude"
	}
	return tool
}

// SpawnTerminalParams are the parameters of spawn_terminal.
type SpawnTerminalParams struct {
	SessionToken    string            `json:"session_token,omitempty" doc:"Optional. An invalid token is refused."`
	CWD             string            `json:"cwd,omitempty" doc:"The working directory. Default: the project's root."`
	Shell           string            `json:"shell,omitempty" doc:"The program. Default: the user's shell."`
	Args            []string          `json:"args,omitempty" doc:"The program's arguments."`
	Env             map[string]string `json:"env,omitempty" doc:"Variables in addition to those that every terminal gets."`
	UseTmux         bool              `json:"use_tmux,omitempty" doc:"Run tmux, so that the terminal outlives the executor."`
	TmuxSessionName string            `json:"tmux_session_name,omitempty" doc:"The tmux session. An existing one is joined; shell and args, if any, then get a window of their own. tmux allows no : and . in a name; they become _."`
	TmuxWindowName  string            `json:"tmux_window_name,omitempty" doc:"The tmux window."`
	Cols            *uint             `json:"cols,omitempty" doc:"Columns. Default 80, also for 0."`
	Rows            *uint             `json:"rows,omitempty" doc:"Rows. Default 24, also for 0."`
	Descriptor      bool              `json:"descriptor,omitempty" doc:"Pass the terminal's file descriptor with the reply (SCM_RIGHTS, only on a Unix socket). The client then reads and writes it, and gets no terminal_output."`
}

// Native returns the parameters of terminal.start.
func (p SpawnTerminalParams) Native() protocol.StartTerminalParams {
	return protocol.StartTerminalParams{
		CWD: p.CWD, Program: p.Shell, Args: p.Args, Env: p.Env, UseTmux: p.UseTmux, TmuxSessionName: p.TmuxSessionName,
		TmuxWindowName: p.TmuxWindowName, Cols: p.Cols, Rows: p.Rows, Descriptor: p.Descriptor,
	}
}
