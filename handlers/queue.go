package handlers

import (
	"context"
	"time"

	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/hub"
	"github.com/duet-rpc/duet-rpc/server"
)

// registerQueue registers what looks at the prompts that wait for their turn, and changes
// them. interruptSession takes one back.
func registerQueue(reg *server.Registry, d Domain) {
	f := sessionFamily
	handle(reg, d, f, "session.queue", func(ctx context.Context, h *hub.Hub, p sessionParams) (queueResult, error) {
		return queueOf(ctx, h, p.SessionID)
	}, server.Doc("Lists the prompts that wait for their turn in a session's conversation, the next one first."))
	handle(reg, d, f, "session.editQueued", func(ctx context.Context, h *hub.Hub, p editQueuedParams) (queueResult, error) {
		if err := h.EditQueued(ctx, p.SessionID, p.Query); err != nil {
			return queueResult{}, err
		}
		return queueOf(ctx, h, p.SessionID)
	}, server.Doc("Changes the text of a prompt that waits for its turn; what goes with it stays. One that has begun is refused (`bad_state`). All clients get the event queue_changed."))
	handle(reg, d, f, "session.moveQueued", func(ctx context.Context, h *hub.Hub, p moveQueuedParams) (queueResult, error) {
		if err := h.MoveQueued(ctx, p.SessionID, p.Before); err != nil {
			return queueResult{}, err
		}
		return queueOf(ctx, h, p.SessionID)
	}, server.Doc("Moves a prompt that waits for its turn to another place in the queue of its conversation. One that has begun is refused (`bad_state`). All clients get the event queue_changed."))
}

type editQueuedParams struct {
	SessionID string `json:"session_id" doc:"The queued session; every id of the run will do."`
	Query     string `json:"query" doc:"What the agent is to do instead."`
}

func (p editQueuedParams) check() error {
	return first(need("session_id", p.SessionID), need("query", p.Query))
}

type moveQueuedParams struct {
	SessionID string `json:"session_id" doc:"The queued session; every id of the run will do."`
	Before    string `json:"before,omitempty" doc:"The queued session of the same conversation before which it is to run; absent: it runs last."`
}

func (p moveQueuedParams) check() error { return need("session_id", p.SessionID) }

type queueResult struct {
	Queued []*queuedPrompt `json:"queued" doc:"The next one first."`
}

type queuedPrompt struct {
	SessionID string    `json:"session_id"`
	TaskID    string    `json:"task_id"`
	Query     string    `json:"query"`
	Truncated bool      `json:"truncated,omitempty" doc:"The query is cut, so that the list fits into a message; getConversation has all of it."`
	CreatedAt time.Time `json:"created_at"`
	Editable  bool      `json:"editable" doc:"False: no client has written it, such as what gates complain of. It can be cancelled, but neither edited nor moved."`
}

func (p *queuedPrompt) texts() []*string { return []*string{&p.Query} }

func queueOf(ctx context.Context, h *hub.Hub, id string) (queueResult, error) {
	list, err := h.Queued(ctx, id)
	if err != nil {
		return queueResult{}, err
	}
	prompts := make([]*queuedPrompt, 0, len(list))
	for _, s := range list {
		prompts = append(prompts, &queuedPrompt{SessionID: s.SessionID, TaskID: domain.TaskName(s.Task), Query: s.Prompt, CreatedAt: s.Run.Created, Editable: s.IsWritten()})
	}
	prompts = fit(prompts, room(ctx))
	for n, p := range prompts {
		p.Truncated = p.Query != list[n].Prompt
	}
	return queueResult{prompts}, nil
}
