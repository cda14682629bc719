// Package boundary has the dialect of application boundaries (specification 003): tasks that a program
// sends and waits for, over the native methods of package protocol. See docs/protocol.md, "Dialects".
package boundary

import (
	"cmp"
	"strings"

	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/protocol"
)

type SendTaskParams struct {
	Prompt   string `json:"prompt,omitempty" doc:"The prompt. This or task is required."`
	Task     string `json:"task,omitempty" doc:"Alias of prompt."`
	Agent    string `json:"agent,omitempty" doc:"The agent's name in the configuration. Default: the agent of the thread, or the default agent."`
	CWD      string `json:"cwd,omitempty" doc:"The agent's working directory. Default: the project's root."`
	Title    string `json:"title,omitempty" doc:"The task's title."`
	Priority int    `json:"priority,omitempty" doc:"Higher runs first. Default 0."`
	Thread   string `json:"thread,omitempty" doc:"The caller's id of the conversation, or any id of an existing one. Tasks with the same id run one after the other. Absent: a new conversation."`
	TaskID   string `json:"taskId,omitempty" doc:"The caller's id of the task, which cancelTask accepts. It must be new, and must not have the form task-0001."`
	protocol.Gated
}

func (p SendTaskParams) Check() error {
	return protocol.NotEmpty("prompt", cmp.Or(strings.TrimSpace(p.Prompt), p.Task))
}

type SendTaskResult struct {
	TaskID     string          `json:"taskId"`
	SessionID  string          `json:"session_id" doc:"The session id of the same run."`
	State      string          `json:"state" doc:"completed or failed."`
	Result     string          `json:"result" doc:"The agent's last message."`
	Error      string          `json:"error,omitempty" doc:"Why the task failed."`
	ErrorCode  string          `json:"error_code,omitempty" doc:"The error code."`
	StopReason string          `json:"stop_reason,omitempty" doc:"The agent's stop reason."`
	Agent      string          `json:"agent" doc:"The agent that runs the prompt."`
	Gates      *protocol.Gates `json:"gates,omitempty" doc:"The state of the gates. Absent without gates."`
}

// A GateFailure is the error data of a task whose gates still fail.
type GateFailure struct {
	Kind          string                `json:"kind"`
	Gate          string                `json:"gate"` // the first one that fails
	Findings      []domain.Diagnostic   `json:"findings"`
	Gates         []protocol.GateResult `json:"gates"` // all that fail
	Reason        string                `json:"reason"`
	Iterations    int                   `json:"iterations"`
	MaxIterations int                   `json:"max_iterations"`
	TaskID        string                `json:"taskId"`
	SessionID     string                `json:"session_id"`
	Result        string                `json:"result"`
}

type TaskIteration struct {
	TaskID        string   `json:"taskId"`
	SessionID     string   `json:"session_id"`
	Iteration     int      `json:"iteration"`
	MaxIterations int      `json:"max_iterations"`
	Gates         []string `json:"gates"`
}

type TaskGateResult struct {
	TaskID        string `json:"taskId"`
	SessionID     string `json:"session_id"`
	Iteration     int    `json:"iteration"`
	MaxIterations int    `json:"max_iterations"`
	protocol.GateResult
}

type TaskProgress struct {
	TaskID    string `json:"taskId"`
	SessionID string `json:"session_id"`
	State     string `json:"state"`
	Gate      string `json:"gate,omitempty"`
}

type TaskComplete struct {
	TaskID    string          `json:"taskId"`
	SessionID string          `json:"session_id"`
	State     string          `json:"state"`
	Gates     *protocol.Gates `json:"gates,omitempty"`
}

// BuildParams are those of build and buildBackend.
type BuildParams struct {
	Name string `json:"name,omitempty" doc:"A name from build.list. Default: the first one."`
}
