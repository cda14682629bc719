package handlers

import "github.com/duet-rpc/duet-rpc/internal/domain"

// resultAtMost bounds a result in event.taskCompleted, in bytes.
const resultAtMost = 64 << 10

// A note is one broadcast that waits. Without a method it is output.
type note struct {
	task   string
	seq    int64
	method string
	params any
	chunk  string // of output that comes
	output []byte // of output that waits
}

// The seq of each is its event's: who has lost the hub goes on behind it.
type taskQueuedNote struct {
	TaskID string `json:"taskId"`
	Prompt string `json:"prompt"`
	Seq    int64  `json:"seq"`
}

type taskStartedNote struct {
	TaskID string `json:"taskId"`
	PID    *int   `json:"pid"`
	Seq    int64  `json:"seq"`
}

type taskOutputNote struct {
	TaskID string `json:"taskId"`
	Chunk  string `json:"chunk"`
	Stream string `json:"stream"`
	Seq    int64  `json:"seq"` // of its end
}

type taskEndedNote struct {
	TaskID   string  `json:"taskId"`
	Result   *string `json:"result,omitempty"`
	Duration *int64  `json:"duration,omitempty"` // milliseconds
	Error    string  `json:"error,omitempty"`
	Reason   string  `json:"reason,omitempty"`
	Seq      int64   `json:"seq"`
}

// noteOf is what an event means for who watches tasks, or nil. s is the session
// as it is now: it may have gone on since.
func noteOf(e domain.Event, s domain.Session) *note {
	if s.Task == 0 {
		return nil
	}
	id := domain.TaskName(s.Task)
	if d, ok := e.Payload.(domain.MessageDelta); ok && !d.Thought && d.Text != "" {
		return &note{task: id, seq: e.Seq, chunk: d.Text}
	}
	change, ok := e.Payload.(domain.RunStateChanged)
	if !ok {
		return nil
	}
	switch change.To {
	case domain.Queued:
		return &note{task: id, seq: e.Seq, method: "event.taskQueued", params: taskQueuedNote{id, cut(s.Prompt, 1000), e.Seq}}
	case domain.Starting:
		return &note{task: id, seq: e.Seq, method: "event.taskStarted", params: taskStartedNote{TaskID: id, Seq: e.Seq}}
	case domain.Completed:
		result, took := cut(s.Result, resultAtMost), duration(s.Run)
		return &note{task: id, seq: e.Seq, method: "event.taskCompleted", params: taskEndedNote{TaskID: id, Seq: e.Seq, Result: &result, Duration: took}}
	case domain.Failed:
		return &note{task: id, seq: e.Seq, method: "event.taskFailed", params: taskEndedNote{TaskID: id, Seq: e.Seq, Error: cut(errorText(s.Run), resultAtMost), Duration: duration(s.Run)}}
	case domain.Cancelled, domain.Interrupted:
		return &note{task: id, seq: e.Seq, method: "event.taskCancelled", params: taskEndedNote{TaskID: id, Seq: e.Seq, Reason: cut(reasonText(s.Run), resultAtMost)}}
	case domain.TimedOut:
		return &note{task: id, seq: e.Seq, method: "event.taskTimeout", params: taskEndedNote{TaskID: id, Seq: e.Seq, Error: cut(errorText(s.Run), resultAtMost)}}
	}
	return nil
}

func reasonText(r domain.Run) string {
	if r.Error == "" {
		return string(r.State)
	}
	return r.Error
}

// duration is how long a run ran, in milliseconds; nil if it did not.
func duration(r domain.Run) *int64 {
	if r.Started.IsZero() || r.Ended.IsZero() {
		return nil
	}
	ms := r.Ended.Sub(r.Started).Milliseconds()
	return &ms
}
