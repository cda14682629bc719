package protocol

import (
	"cmp"
	"time"
)

type EditQueuedParams struct {
	SessionID string `json:"session_id" doc:"The queued session; every id of the run will do."`
	Query     string `json:"query" doc:"What the agent is to do instead."`
}

func (p EditQueuedParams) Check() error {
	return cmp.Or(NotEmpty("session_id", p.SessionID), NotEmpty("query", p.Query))
}

type MoveQueuedParams struct {
	SessionID string `json:"session_id" doc:"The queued session; every id of the run will do."`
	Before    string `json:"before,omitempty" doc:"The queued session of the same conversation before which it is to run; absent: it runs last."`
}

func (p MoveQueuedParams) Check() error { return NotEmpty("session_id", p.SessionID) }

type QueueResult struct {
	Queued []*QueuedPrompt `json:"queued" doc:"The next one first."`
}

type QueuedPrompt struct {
	SessionID string    `json:"session_id"`
	TaskID    string    `json:"task_id"`
	Query     string    `json:"query"`
	Truncated bool      `json:"truncated,omitempty" doc:"The query is cut, so that the list fits into a message; getConversation has all of it."`
	CreatedAt time.Time `json:"created_at"`
	Editable  bool      `json:"editable" doc:"False: no client has written it, such as what gates complain of. It can be cancelled, but neither edited nor moved."`
}

func (p *QueuedPrompt) Texts() []*string { return []*string{&p.Query} }
