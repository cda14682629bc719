package protocol

import (
	"cmp"
	"encoding/json"
	"strings"
	"time"

	"github.com/duet-rpc/duet-rpc/internal/domain"
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

// TaskChanged is the notification about a task's new state, by the event with the number seq, or
// nil. s is the task as it is now, which may be in a later state.
func TaskChanged(to domain.State, s domain.Session, seq int64) *Notification {
	id := domain.TaskName(s.Task)
	switch to {
	case domain.Queued:
		return notification(methodTaskQueued, taskQueued{id, Cut(s.Prompt, longestTaskPrompt), seq})
	case domain.Starting:
		return notification(methodTaskStarted, taskStarted{TaskID: id, Seq: seq})
	case domain.Completed:
		result := Cut(s.Result, longestTaskResult)
		return notification(methodTaskCompleted, taskEnded{TaskID: id, Seq: seq, Result: &result, Duration: DurationMS(s.Run)})
	case domain.Failed:
		return notification(methodTaskFailed, taskEnded{TaskID: id, Seq: seq, Error: taskError(s.Run), Duration: DurationMS(s.Run), AuthMethods: s.SignIn})
	case domain.Cancelled, domain.Interrupted:
		return notification(methodTaskCancelled, taskEnded{TaskID: id, Seq: seq, Reason: taskReason(s.Run)})
	case domain.TimedOut:
		return notification(methodTaskTimeout, taskEnded{TaskID: id, Seq: seq, Error: taskError(s.Run)})
	}
	return nil
}

// TaskOutput is the notification about an agent's text; seq is the number of its last event.
func TaskOutput(task int64, output string, seq int64) *Notification {
	return notification(methodTaskOutput, taskOutput{domain.TaskName(task), output, "stdout", seq})
}

func taskError(r domain.Run) string { return Cut(ErrorText(r), longestTaskResult) }

func taskReason(r domain.Run) string {
	if r.Error == "" {
		return string(r.State)
	}
	return Cut(r.Error, longestTaskResult)
}

// SubmittedStateOf is a state in the words of AIWG as the reply to task.submit
// has it. A task that has ended by then was running when it was submitted:
// clients expect no other state there.
func SubmittedStateOf(s domain.State) string {
	if name := TaskStateOf(s); name == stateNames[domain.Queued].task {
		return name
	}
	return stateNames[domain.Running].task
}

// isoMillis is how AIWG writes a time: ISO 8601 in UTC with milliseconds.
const isoMillis = "2006-01-02T15:04:05.000Z"

// Timestamp is a time as AIWG writes it.
func Timestamp(t time.Time) string { return t.UTC().Format(isoMillis) }

// TimestampOrNull is nil for the zero time.
func TimestampOrNull(t time.Time) *string {
	if t.IsZero() {
		return nil
	}
	s := Timestamp(t)
	return &s
}

type SubmitTaskParams struct {
	Prompt   string `json:"prompt" doc:"What the agent is to do."`
	Agent    string `json:"agent,omitempty" doc:"The agent's name in the configuration; absent: the default one."`
	Priority *int   `json:"priority,omitempty" doc:"Higher first; 0 unless told."`
	CWD      string `json:"cwd,omitempty" doc:"The directory in which the agent works; absent: the project's root."`
	Title    string `json:"title,omitempty" doc:"What to call it."`
	PromptContent
	Budget *RunBudget `json:"budget,omitempty" doc:"How much it may use, in the place of what is configured ([budget.run])."`
	Gated
}

type SubmitTaskResult struct {
	TaskID    string `json:"taskId"`
	State     string `json:"state" doc:"running or queued."`
	Agent     string `json:"agent" doc:"The agent that was taken."`
	SessionID string `json:"session_id" doc:"The same under its name as a session."`
}

type ChatParams struct {
	Message  string `json:"message" doc:"What to say."`
	Priority *int   `json:"priority,omitempty" doc:"Higher first; 5 unless told."`
}

func (p ChatParams) Check() error { return NotEmpty("message", p.Message) }

type TaskParams struct {
	TaskID string `json:"taskId" doc:"The task; every id of the run will do."`
}

func (p TaskParams) Check() error { return NotEmpty("taskId", p.TaskID) }

type TaskCancelParams struct {
	TaskID string `json:"taskId" doc:"The task; every id of the run will do."`
	Reason string `json:"reason,omitempty" doc:"Why, for the record."`
}

func (p TaskCancelParams) Check() error { return NotEmpty("taskId", p.TaskID) }

type TaskCancelResult struct {
	Cancelled bool `json:"cancelled" doc:"The task was cancelled, or its end has begun."`
}

type ListTasksParams struct {
	State  TaskState `json:"state,omitempty" doc:"Only tasks in this state."`
	Limit  *uint     `json:"limit,omitempty" doc:"How many; 20 unless told, 1000 at most."`
	Agent  string    `json:"agent,omitempty" doc:"Only tasks of this agent."`
	Before string    `json:"before,omitempty" doc:"Only tasks older than this one, for paging."`
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
	Since *int64 `json:"since,omitempty" doc:"If this connection was not told of tasks before: first what became of them after this seq, the last that an event.task… notification had; -1: after the end of the hub before this one."`
}

// A Task is a run as AIWG shows it, and our names for it.
type Task struct {
	ID          string          `json:"id"`
	Prompt      string          `json:"prompt"`
	Agent       *string         `json:"agent"`
	Priority    int             `json:"priority"`
	State       string          `json:"state" doc:"queued, running, completed, failed or cancelled."`
	CreatedAt   string          `json:"createdAt"`
	StartedAt   *string         `json:"startedAt"`
	CompletedAt *string         `json:"completedAt" doc:"When it ended, however it ended."`
	PID         *int            `json:"pid" doc:"Always null: agents are none of the caller's processes."`
	Result      *string         `json:"result" doc:"The agent's last message, once the task is completed."`
	Error       *string         `json:"error"`
	Output      string          `json:"output" doc:"What the agent said so far. In task.list: its last message."`
	Metadata    json.RawMessage `json:"metadata"`

	SessionID string `json:"session_id"`
	RunID     string `json:"run_id"`
	ThreadID  string `json:"thread_id"`
	CWD       string `json:"cwd"`
	Title     string `json:"title"`
	Summary   string `json:"summary" doc:"The beginning of what a human asked for, or why the agent went on by itself."`
	ErrorCode string `json:"error_code,omitempty" doc:"In capitals: TIMEOUT, ORPHANED, ..."`
	Status    string `json:"status" doc:"The state as sessions have it."`

	AuthMethods []domain.AuthMethod `json:"auth_methods,omitempty" doc:"It failed because somebody has to sign in, or to give the agent its key: the ways that the agent offers."`
	Gates       *Gates              `json:"gates,omitempty" doc:"Of work that has gates (\"Gates\"): where it stands."`
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
	Prompt   string `json:"prompt,omitempty" doc:"What the agent is to do. This or task is needed."`
	Task     string `json:"task,omitempty" doc:"Another name for prompt."`
	Agent    string `json:"agent,omitempty" doc:"The agent's name in the configuration; absent: the default one, or that of the thread."`
	CWD      string `json:"cwd,omitempty" doc:"The directory in which the agent works; absent: the project's root."`
	Title    string `json:"title,omitempty" doc:"What to call it."`
	Priority int    `json:"priority,omitempty" doc:"Higher first; 0 unless told."`
	Thread   string `json:"thread,omitempty" doc:"The caller's own id of the conversation, or any id of one that there is. Tasks with the same one follow each other; absent: a new one."`
	TaskID   string `json:"taskId,omitempty" doc:"The caller's own id of the task, by which cancelTask finds it; it must be new, and not of the form task-0001, which is ours."`
	Gated
}

func (p SendTaskParams) Check() error {
	return NotEmpty("prompt", cmp.Or(strings.TrimSpace(p.Prompt), p.Task))
}

type SendTaskResult struct {
	TaskID     string `json:"taskId"`
	SessionID  string `json:"session_id" doc:"The same under its name as a session."`
	State      string `json:"state" doc:"completed or failed."`
	Result     string `json:"result" doc:"What the agent said last."`
	Error      string `json:"error,omitempty" doc:"Why it failed."`
	ErrorCode  string `json:"error_code,omitempty" doc:"The same for programs."`
	StopReason string `json:"stop_reason,omitempty" doc:"The agent's own."`
	Agent      string `json:"agent" doc:"The agent that was taken."`
	Gates      *Gates `json:"gates,omitempty" doc:"Of a task that has gates: where they stand."`
}

// A GateFailure is the data of the error of a task whose gates still fail.
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

// AskedIn says where something is asked.
type AskedIn struct {
	Thread string `json:"thread,omitempty" doc:"A session that works, by any id: the question is its own, and it waits too. Another name is that of a conversation of questions, which is made where there is none; absent: the project's."`
	CWD    string `json:"cwd,omitempty" doc:"The directory that paths and rules are read in, where the question is not a session's; absent: the project's root."`
	Keep   bool   `json:"keep,omitempty" doc:"The question stays open when the connection ends, or the hub: who asks the same again in the same thread gets the answer, for an hour. Has no effect on a question of a session."`
}

type AskUserParams struct {
	Message string          `json:"message" doc:"What to ask."`
	Subject string          `json:"subject,omitempty" doc:"What it is about, in a few words."`
	Options json.RawMessage `json:"options,omitempty" doc:"Answers to choose from: strings, or {option_id,name,kind}. Absent: any words will do."`
	AskedIn
}

type AskUserResult struct {
	Response   string `json:"response" doc:"The answer in words: what was written, or the name of the option."`
	Option     string `json:"option,omitempty" doc:"The option_id of the option that was chosen."`
	ApprovalID string `json:"approval_id" doc:"The question, as getApproval has it."`
}

type RequestPermissionParams struct {
	ToolName  string          `json:"tool_name" doc:"The tool."`
	ToolInput json.RawMessage `json:"tool_input,omitempty" doc:"Its input."`
	ToolUseID string          `json:"tool_use_id,omitempty" doc:"The caller's own id of the tool call."`
	AskedIn
}

func (p RequestPermissionParams) Check() error { return NotEmpty("tool_name", p.ToolName) }

type RequestPermissionResult struct {
	Approved     bool            `json:"approved" doc:"true"`
	Reason       string          `json:"reason,omitempty" doc:"user_approved, or the rule=… or mode=… that has answered."`
	Comment      string          `json:"comment,omitempty" doc:"What the human said with it."`
	UpdatedInput json.RawMessage `json:"updated_input,omitempty" doc:"The tool is to run with this input instead."`
	ApprovalID   string          `json:"approval_id,omitempty" doc:"The question, as getApproval has it, where a human was asked."`
}

type CancelTaskResult struct {
	Cancelled bool `json:"cancelled" doc:"The task was cancelled, or its end has begun. False: it has ended before."`
}

// A RunBudget is how much a run may use.
type RunBudget struct {
	Turns   uint    `json:"turns,omitempty" doc:"Rounds of tool calls; 0: as configured."`
	TimeMS  uint    `json:"time_ms,omitempty" doc:"How long its agent may work, in milliseconds, without what it waits for people; 0: as configured."`
	Tokens  uint    `json:"tokens,omitempty" doc:"Tokens, read and written; 0: as configured."`
	CostUSD float64 `json:"cost_usd,omitempty" doc:"US dollars; 0: as configured."`
	Repeats uint    `json:"repeats,omitempty" doc:"The same tool call, one after the other; 0: as configured."`
}

type UsageParams struct {
	By        string `json:"by,omitempty" doc:"day, agent, session (a conversation) or model: rows has one entry for each."`
	Since     string `json:"since,omitempty" doc:"Only what was asked for at this time or later: as RFC 3339 has it, or a date, which begins at midnight where the hub is."`
	Until     string `json:"until,omitempty" doc:"Only what was asked for before."`
	SessionID string `json:"session_id,omitempty" doc:"Only the conversation of this session; every id of one will do."`
}

type Usage struct {
	Runs             int     `json:"runs"`
	InputTokens      int64   `json:"input_tokens"`
	OutputTokens     int64   `json:"output_tokens"`
	CacheReadTokens  int64   `json:"cache_read_tokens"`
	CacheWriteTokens int64   `json:"cache_write_tokens"`
	CostUSD          float64 `json:"cost_usd"`
	TimeMS           int64   `json:"time_ms" doc:"How long agents worked, without what they waited for people."`
}

type UsageRow struct {
	Key   string `json:"key" doc:"The day, agent, conversation (its thread_id) or model; empty where it is not known."`
	Title string `json:"title,omitempty" doc:"Of a conversation."`
	Usage
}

type UsageResult struct {
	Total Usage      `json:"total"`
	Rows  []UsageRow `json:"rows,omitempty" doc:"With by: the last day first, or what cost most."`
}
