// Package aiwg has the dialect of AIWG's clients (specification 000): tasks and the chat, over the native
// methods of package protocol. See docs/protocol.md, "Dialects".
package aiwg

import (
	"cmp"
	"encoding/json"

	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/protocol"
)

// stateNames has AIWG's name of each state. Its clients do not see the others.
var stateNames = map[domain.State]string{
	domain.Queued:       "queued",
	domain.Starting:     "running",
	domain.Running:      "running",
	domain.WaitingInput: "running",
	domain.Interrupting: "running",
	domain.Completed:    "completed",
	domain.Failed:       "failed",
	domain.TimedOut:     "failed",
	domain.Cancelled:    "cancelled",
	domain.Interrupted:  "cancelled",
}

// StateOf returns AIWG's name of a state, or "" if AIWG's clients do not see it.
func StateOf(s domain.State) string { return stateNames[s] }

// A TaskState is AIWG's name of a state.
type TaskState string

// Accepted implements schema.Enum.
func (TaskState) Accepted() []string {
	return []string{"queued", "running", "completed", "failed", "cancelled"}
}

// States returns the states with this name; for "", all states of tasks.
func (s TaskState) States() []domain.State {
	return domain.StatesWhere(func(state domain.State) bool {
		name := stateNames[state]
		return name != "" && (s == "" || name == string(s))
	})
}

// AIWG's clients get notifications about tasks without a subscription (docs/protocol.md, "Tasks").
const (
	methodTaskQueued    = "event.taskQueued"
	methodTaskStarted   = "event.taskStarted"
	methodTaskOutput    = "event.taskOutput"
	methodTaskCompleted = "event.taskCompleted"
	methodTaskFailed    = "event.taskFailed"
	methodTaskCancelled = "event.taskCancelled"
	methodTaskTimeout   = "event.taskTimeout"
)

// The longest texts in notifications of tasks, in bytes; task.get has all of them.
const (
	longestTaskPrompt = 1000
	longestTaskResult = 64 << 10 // also of errors and reasons
)

// Seq is the number of the event, from which a client continues after it lost the hub.
type taskQueued struct {
	TaskID string `json:"taskId"`
	Prompt string `json:"prompt"`
	Seq    int64  `json:"seq"`
}

type taskStarted struct {
	TaskID string `json:"taskId"`
	PID    *int   `json:"pid"` // always null: agents are none of the client's processes
	Seq    int64  `json:"seq"`
}

type taskOutput struct {
	TaskID string `json:"taskId"`
	Chunk  string `json:"chunk"`
	Stream string `json:"stream"`
	Seq    int64  `json:"seq"` // of its end
}

type taskEnded struct {
	TaskID   string  `json:"taskId"`
	Result   *string `json:"result,omitempty"`
	Duration *int64  `json:"duration,omitempty"` // milliseconds
	Error    string  `json:"error,omitempty"`

	AuthMethods []domain.AuthMethod `json:"auth_methods,omitempty"`

	Reason string `json:"reason,omitempty"`
	Seq    int64  `json:"seq"`
}

// TaskChanged returns the notification about a task's new state, or nil. seq is the number of the
// event. s is the current task, which may be in a later state.
func TaskChanged(to domain.State, s domain.TurnInSession, seq int64) *protocol.Notification {
	id := domain.TaskName(s.Task)
	switch to {
	case domain.Queued:
		return protocol.Notify(methodTaskQueued, taskQueued{id, protocol.Cut(s.Prompt, longestTaskPrompt), seq})
	case domain.Starting:
		return protocol.Notify(methodTaskStarted, taskStarted{TaskID: id, Seq: seq})
	case domain.Completed:
		result := protocol.Cut(s.Result, longestTaskResult)
		return protocol.Notify(methodTaskCompleted, taskEnded{TaskID: id, Seq: seq, Result: &result, Duration: protocol.DurationMS(s.Turn)})
	case domain.Failed:
		return protocol.Notify(methodTaskFailed,
			taskEnded{TaskID: id, Seq: seq, Error: taskError(s.Turn), Duration: protocol.DurationMS(s.Turn), AuthMethods: s.SignIn})
	case domain.Cancelled, domain.Interrupted:
		return protocol.Notify(methodTaskCancelled, taskEnded{TaskID: id, Seq: seq, Reason: taskReason(s.Turn)})
	case domain.TimedOut:
		return protocol.Notify(methodTaskTimeout, taskEnded{TaskID: id, Seq: seq, Error: taskError(s.Turn)})
	}
	return nil
}

// TaskOutput returns the notification about an agent's text; seq is the number of its last event.
func TaskOutput(task int64, output string, seq int64) *protocol.Notification {
	return protocol.Notify(methodTaskOutput, taskOutput{domain.TaskName(task), output, "stdout", seq})
}

func taskError(r domain.Turn) string { return protocol.Cut(protocol.ErrorText(r), longestTaskResult) }

func taskReason(r domain.Turn) string {
	if r.Error == "" {
		return string(r.State)
	}
	return protocol.Cut(r.Error, longestTaskResult)
}

// SubmittedStateOf returns AIWG's name of a state for the result of task.submit: queued or running.
// A task that has already ended was running when it was submitted, and clients expect no other
// state.
func SubmittedStateOf(s domain.State) string {
	if name := StateOf(s); name == stateNames[domain.Queued] {
		return name
	}
	return stateNames[domain.Running]
}

type SubmitTaskParams struct {
	Prompt   string `json:"prompt" doc:"The prompt."`
	Agent    string `json:"agent,omitempty" doc:"The agent's name in the configuration. Default: the default agent."`
	Priority *int   `json:"priority,omitempty" doc:"Higher runs first. Default 0."`
	CWD      string `json:"cwd,omitempty" doc:"The agent's working directory. Default: the project's root."`
	Title    string `json:"title,omitempty" doc:"The task's title."`
	protocol.PromptContent
	Budget *protocol.TurnBudget `json:"budget,omitempty" doc:"Limits of the run, in place of the configured ones ([budget.turn])."`
	protocol.Gated
}

func (p SubmitTaskParams) Check() error {
	return cmp.Or(protocol.NotEmpty("prompt", p.Prompt), p.Budget.Check())
}

type SubmitTaskResult struct {
	TaskID    string `json:"taskId"`
	State     string `json:"state" doc:"running or queued."`
	Agent     string `json:"agent" doc:"The agent that runs the prompt."`
	SessionID string `json:"session_id" doc:"The session id of the same run."`
}

type ChatParams struct {
	Message  string `json:"message" doc:"The message."`
	Priority *int   `json:"priority,omitempty" doc:"Higher runs first. Default 5."`
}

func (p ChatParams) Check() error { return protocol.NotEmpty("message", p.Message) }

type TaskParams struct {
	TaskID string `json:"taskId" doc:"The task, by any id of the run."`
}

func (p TaskParams) Check() error { return protocol.NotEmpty("taskId", p.TaskID) }

type TaskCancelParams struct {
	TaskID string `json:"taskId" doc:"The task, by any id of the run."`
	Reason string `json:"reason,omitempty" doc:"The reason, stored with the run."`
}

func (p TaskCancelParams) Check() error { return protocol.NotEmpty("taskId", p.TaskID) }

type TaskCancelResult struct {
	Cancelled bool `json:"cancelled" doc:"The task was cancelled, or is being stopped."`
}

type ListTasksParams struct {
	State  TaskState `json:"state,omitempty" doc:"Only tasks in this state."`
	Limit  *uint     `json:"limit,omitempty" doc:"Default 20, at most 1000."`
	Agent  string    `json:"agent,omitempty" doc:"Only tasks of this agent."`
	Before string    `json:"before,omitempty" doc:"Only tasks older than this task, for paging."`
}

type TaskStats struct {
	Total     int `json:"total"`
	Running   int `json:"running"`
	Queued    int `json:"queued"`
	Completed int `json:"completed"`
	Failed    int `json:"failed"`
	Cancelled int `json:"cancelled"`
}

type TaskStatsParams struct {
	Since *int64 `json:"since,omitempty" doc:"On the first task method of this connection: first replay the changes of tasks after this seq, the seq of the last event.task… notification received. -1: those after the end of the previous hub."`
}

// A Task is a run in AIWG's form, with our names too.
type Task struct {
	ID          string          `json:"id"`
	Prompt      string          `json:"prompt"`
	Agent       *string         `json:"agent"`
	Priority    int             `json:"priority"`
	State       string          `json:"state" doc:"queued, running, completed, failed or cancelled."`
	CreatedAt   string          `json:"createdAt"`
	StartedAt   *string         `json:"startedAt"`
	CompletedAt *string         `json:"completedAt" doc:"When the run ended, in any state."`
	PID         *int            `json:"pid" doc:"Always null: agents are not processes of the client."`
	Result      *string         `json:"result" doc:"The agent's last message, when the task is completed."`
	Error       *string         `json:"error"`
	Output      string          `json:"output" doc:"The agent's text so far. In task.list: its last message."`
	Metadata    json.RawMessage `json:"metadata"`

	SessionID string `json:"session_id"`
	RunID     string `json:"run_id"`
	ThreadID  string `json:"thread_id"`
	CWD       string `json:"cwd"`
	Title     string `json:"title"`
	Summary   string `json:"summary" doc:"The beginning of the user's request, or why the agent continued by itself."`
	ErrorCode string `json:"error_code,omitempty" doc:"In capitals, such as TIMEOUT or ORPHANED."`
	Status    string `json:"status" doc:"The status of the same run as a session."`

	AuthMethods []domain.AuthMethod `json:"auth_methods,omitempty" doc:"The sign-in methods that the agent offers. Present if the run failed because the user must sign in or give the agent its key."`
	Gates       *protocol.Gates     `json:"gates,omitempty" doc:"The state of the gates (\"Gates\"). Absent without gates."`
}

func (t *Task) Texts() []*string {
	list := []*string{&t.Prompt, &t.Output}
	for _, s := range []*string{t.Result, t.Error} {
		if s != nil {
			list = append(list, s)
		}
	}
	return list
}
