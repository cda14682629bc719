package protocol

import (
	"cmp"
	"encoding/json"
	"strconv"
	"strings"
	"time"

	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/server"
)

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
func TaskChanged(to domain.State, s domain.TurnInSession, seq int64) *Notification {
	id := domain.TaskName(s.Task)
	switch to {
	case domain.Queued:
		return notification(methodTaskQueued, taskQueued{id, Cut(s.Prompt, longestTaskPrompt), seq})
	case domain.Starting:
		return notification(methodTaskStarted, taskStarted{TaskID: id, Seq: seq})
	case domain.Completed:
		result := Cut(s.Result, longestTaskResult)
		return notification(methodTaskCompleted, taskEnded{TaskID: id, Seq: seq, Result: &result, Duration: DurationMS(s.Turn)})
	case domain.Failed:
		return notification(methodTaskFailed, taskEnded{TaskID: id, Seq: seq, Error: taskError(s.Turn), Duration: DurationMS(s.Turn), AuthMethods: s.SignIn})
	case domain.Cancelled, domain.Interrupted:
		return notification(methodTaskCancelled, taskEnded{TaskID: id, Seq: seq, Reason: taskReason(s.Turn)})
	case domain.TimedOut:
		return notification(methodTaskTimeout, taskEnded{TaskID: id, Seq: seq, Error: taskError(s.Turn)})
	}
	return nil
}

// TaskOutput returns the notification about an agent's text; seq is the number of its last event.
func TaskOutput(task int64, output string, seq int64) *Notification {
	return notification(methodTaskOutput, taskOutput{domain.TaskName(task), output, "stdout", seq})
}

func taskError(r domain.Turn) string { return Cut(ErrorText(r), longestTaskResult) }

func taskReason(r domain.Turn) string {
	if r.Error == "" {
		return string(r.State)
	}
	return Cut(r.Error, longestTaskResult)
}

// SubmittedStateOf returns AIWG's name of a state for the result of task.submit: queued or running.
// A task that has already ended was running when it was submitted, and clients expect no other
// state.
func SubmittedStateOf(s domain.State) string {
	if name := TaskStateOf(s); name == stateNames[domain.Queued].task {
		return name
	}
	return stateNames[domain.Running].task
}

// isoMillis is AIWG's time format: ISO 8601 in UTC with milliseconds.
const isoMillis = "2006-01-02T15:04:05.000Z"

// Timestamp formats a time as AIWG does.
func Timestamp(t time.Time) string { return t.UTC().Format(isoMillis) }

// TimestampOrNull is Timestamp, or nil for the zero time.
func TimestampOrNull(t time.Time) *string {
	if t.IsZero() {
		return nil
	}
	s := Timestamp(t)
	return &s
}

type SubmitTaskParams struct {
	Prompt   string `json:"prompt" doc:"The prompt."`
	Agent    string `json:"agent,omitempty" doc:"The agent's name in the configuration. Default: the default agent."`
	Priority *int   `json:"priority,omitempty" doc:"Higher runs first. Default 0."`
	CWD      string `json:"cwd,omitempty" doc:"The agent's working directory. Default: the project's root."`
	Title    string `json:"title,omitempty" doc:"The task's title."`
	PromptContent
	Budget *RunBudget `json:"budget,omitempty" doc:"Limits of the run, in place of the configured ones ([budget.turn])."`
	Gated
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

func (p ChatParams) Check() error { return NotEmpty("message", p.Message) }

type TaskParams struct {
	TaskID string `json:"taskId" doc:"The task, by any id of the run."`
}

func (p TaskParams) Check() error { return NotEmpty("taskId", p.TaskID) }

type TaskCancelParams struct {
	TaskID string `json:"taskId" doc:"The task, by any id of the run."`
	Reason string `json:"reason,omitempty" doc:"The reason, stored with the run."`
}

func (p TaskCancelParams) Check() error { return NotEmpty("taskId", p.TaskID) }

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
	Gates       *Gates              `json:"gates,omitempty" doc:"The state of the gates (\"Gates\"). Absent without gates."`
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

type SendTaskParams struct {
	Prompt   string `json:"prompt,omitempty" doc:"The prompt. This or task is required."`
	Task     string `json:"task,omitempty" doc:"Alias of prompt."`
	Agent    string `json:"agent,omitempty" doc:"The agent's name in the configuration. Default: the agent of the thread, or the default agent."`
	CWD      string `json:"cwd,omitempty" doc:"The agent's working directory. Default: the project's root."`
	Title    string `json:"title,omitempty" doc:"The task's title."`
	Priority int    `json:"priority,omitempty" doc:"Higher runs first. Default 0."`
	Thread   string `json:"thread,omitempty" doc:"The caller's id of the conversation, or any id of an existing one. Tasks with the same id run one after the other. Absent: a new conversation."`
	TaskID   string `json:"taskId,omitempty" doc:"The caller's id of the task, which cancelTask accepts. It must be new, and must not have the form task-0001."`
	Gated
}

func (p SendTaskParams) Check() error {
	return NotEmpty("prompt", cmp.Or(strings.TrimSpace(p.Prompt), p.Task))
}

type SendTaskResult struct {
	TaskID     string `json:"taskId"`
	SessionID  string `json:"session_id" doc:"The session id of the same run."`
	State      string `json:"state" doc:"completed or failed."`
	Result     string `json:"result" doc:"The agent's last message."`
	Error      string `json:"error,omitempty" doc:"Why the task failed."`
	ErrorCode  string `json:"error_code,omitempty" doc:"The error code."`
	StopReason string `json:"stop_reason,omitempty" doc:"The agent's stop reason."`
	Agent      string `json:"agent" doc:"The agent that runs the prompt."`
	Gates      *Gates `json:"gates,omitempty" doc:"The state of the gates. Absent without gates."`
}

// A GateFailure is the error data of a task whose gates still fail.
type GateFailure struct {
	Kind          string              `json:"kind"`
	Gate          string              `json:"gate"` // the first one that fails
	Findings      []domain.Diagnostic `json:"findings"`
	Gates         []GateResult        `json:"gates"` // all that fail
	Reason        string              `json:"reason"`
	Iterations    int                 `json:"iterations"`
	MaxIterations int                 `json:"max_iterations"`
	TaskID        string              `json:"taskId"`
	SessionID     string              `json:"session_id"`
	Result        string              `json:"result"`
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
	GateResult
}

type TaskProgress struct {
	TaskID    string `json:"taskId"`
	SessionID string `json:"session_id"`
	State     string `json:"state"`
	Gate      string `json:"gate,omitempty"`
}

type TaskComplete struct {
	TaskID    string `json:"taskId"`
	SessionID string `json:"session_id"`
	State     string `json:"state"`
	Gates     *Gates `json:"gates,omitempty"`
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

type AskUserResult struct {
	Response   string `json:"response" doc:"The answer: the user's text, or the name of the option."`
	Option     string `json:"option,omitempty" doc:"The option_id of the chosen option."`
	ApprovalID string `json:"approval_id" doc:"The approval, for getApproval."`
}

type RequestPermissionParams struct {
	ToolName  string          `json:"tool_name" doc:"The tool."`
	ToolInput json.RawMessage `json:"tool_input,omitempty" doc:"The tool's input."`
	ToolUseID string          `json:"tool_use_id,omitempty" doc:"The caller's id of the tool call."`
	AskedIn
}

func (p RequestPermissionParams) Check() error { return NotEmpty("tool_name", p.ToolName) }

type RequestPermissionResult struct {
	Approved     bool            `json:"approved" doc:"true"`
	Reason       string          `json:"reason,omitempty" doc:"user_approved, or the rule=… or mode=… that decided."`
	Comment      string          `json:"comment,omitempty" doc:"The user's comment."`
	UpdatedInput json.RawMessage `json:"updated_input,omitempty" doc:"The input that the tool must use instead."`
	ApprovalID   string          `json:"approval_id,omitempty" doc:"The approval, for getApproval, if a person was asked."`
}

type CancelTaskResult struct {
	Cancelled bool `json:"cancelled" doc:"The task was cancelled, or is being stopped. false: it had ended before."`
}

// A RunBudget limits a run.
type RunBudget struct {
	Turns   uint    `json:"turns,omitempty" doc:"Rounds of tool calls; 0: as configured."`
	TimeMS  uint    `json:"time_ms,omitempty" doc:"Working time of the agent in milliseconds; waiting for people does not count. 0: as configured."`
	Tokens  uint    `json:"tokens,omitempty" doc:"Tokens read and written; 0: as configured."`
	CostUSD float64 `json:"cost_usd,omitempty" doc:"US dollars; 0: as configured."`
	Repeats uint    `json:"repeats,omitempty" doc:"Identical tool calls in a row; 0: as configured."`
}

// Check refuses a negative cost, which the schema allows. nil is accepted.
func (b *RunBudget) Check() error {
	if b == nil || b.CostUSD >= 0 {
		return nil
	}
	return server.InvalidParam(server.ParamError{Param: "budget.cost_usd", Expected: "number from 0 on", Received: strconv.FormatFloat(b.CostUSD, 'g', -1, 64)})
}

type UsageParams struct {
	By        string `json:"by,omitempty" doc:"day, agent, session (a conversation) or model. rows then has one entry for each."`
	Since     string `json:"since,omitempty" doc:"Only runs created at or after this time: RFC 3339, or a date, which starts at midnight in the hub's time zone."`
	Until     string `json:"until,omitempty" doc:"Only runs created before this time."`
	SessionID string `json:"session_id,omitempty" doc:"Only the conversation of this session, by any id of a run."`
}

type Usage struct {
	Runs             int     `json:"runs"`
	InputTokens      int64   `json:"input_tokens"`
	OutputTokens     int64   `json:"output_tokens"`
	CacheReadTokens  int64   `json:"cache_read_tokens"`
	CacheWriteTokens int64   `json:"cache_write_tokens"`
	CostUSD          float64 `json:"cost_usd"`
	TimeMS           int64   `json:"time_ms" doc:"Working time of the agents in milliseconds; waiting for people does not count."`
}

type UsageRow struct {
	Key   string `json:"key" doc:"The day, agent, conversation (thread_id) or model. Empty if unknown."`
	Title string `json:"title,omitempty" doc:"The conversation's title."`
	Usage
}

type UsageResult struct {
	Total Usage      `json:"total"`
	Rows  []UsageRow `json:"rows,omitempty" doc:"With by: the newest day first, or the highest cost first."`
}
