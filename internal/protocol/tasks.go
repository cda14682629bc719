package protocol

import (
	"time"

	"github.com/duet-rpc/duet-rpc/internal/domain"
)

// AIWG's clients are told of tasks by notifications that they have not
// subscribed to (docs/protocol.md, "Tasks").
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

// The seq of each is its event's: a client that has lost the hub goes on behind it.
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

// TaskChanged is what AIWG's clients are told when a task comes to a state, by the
// event with the number seq; nil where they are told nothing. s is the task as
// it is now: it may have gone on since.
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

// TaskOutput is what AIWG's clients are told of what an agent said; seq is the
// number of the last event that has some of it.
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
