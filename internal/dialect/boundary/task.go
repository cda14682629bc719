// Package boundary has the dialect of application boundaries (specification 003): tasks that a program
// sends and waits for, over the native methods of package protocol. See docs/protocol.md, "Dialects".
package boundary

import (
	"cmp"
	"encoding/json"
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

// Native returns the parameters of session.start.
func (p SendTaskParams) Native() protocol.StartParams {
	return protocol.StartParams{
		Prompt: cmp.Or(strings.TrimSpace(p.Prompt), p.Task), Agent: p.Agent, WorkingDir: p.CWD, Title: p.Title, Priority: p.Priority,
		Source: domain.SourceTask, Alias: p.Thread, TurnID: p.TaskID, Gated: p.Gated,
	}
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

// AskedIn selects the conversation of a question.
type AskedIn struct {
	Thread string `json:"thread,omitempty" doc:"An active session, by any id: the question belongs to it, and the session waits too. Any other name selects a conversation of questions, which is created if necessary. Default: the project's."`
	CWD    string `json:"cwd,omitempty" doc:"The directory for relative paths and rules, if the question does not belong to a session. Default: the project's root."`
	Keep   bool   `json:"keep,omitempty" doc:"Keep the question open when the connection or the hub ends. The same question in the same thread then gets the answer, for an hour. No effect on a question of a session."`
}

type AskUserParams struct {
	Message string          `json:"message" doc:"The question."`
	Subject string          `json:"subject,omitempty" doc:"The topic, in a few words."`
	Options json.RawMessage `json:"options,omitempty" doc:"Answers to choose from: strings, or {option_id,name,kind}. Absent: any text is an answer."`
	AskedIn
}

type RequestPermissionParams struct {
	ToolName  string          `json:"tool_name" doc:"The tool."`
	ToolInput json.RawMessage `json:"tool_input,omitempty" doc:"The tool's input."`
	ToolUseID string          `json:"tool_use_id,omitempty" doc:"The caller's id of the tool call."`
	AskedIn
}

func (p RequestPermissionParams) Check() error { return protocol.NotEmpty("tool_name", p.ToolName) }

type CancelTaskResult struct {
	Cancelled bool `json:"cancelled" doc:"The task was cancelled, or is being stopped. false: it had ended before."`
}

func (in AskedIn) native() protocol.AskedIn {
	return protocol.AskedIn{Session: in.Thread, WorkingDir: in.CWD, Keep: in.Keep, Named: true}
}

// ConsoleParams are those of console.
type ConsoleParams struct {
	protocol.ConsoleParams
	SessionID string `json:"session_id,omitempty" doc:"Alias of session."`
}

// PageErrorParams are those of error.
type PageErrorParams struct {
	protocol.PageErrorParams
	SessionID string `json:"session_id,omitempty" doc:"Alias of session."`
}

// NavigationParams are those of updateNavigationState.
type NavigationParams struct {
	protocol.NavigationParams
	SessionID string `json:"session_id,omitempty" doc:"Alias of session."`
}
