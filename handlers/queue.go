package handlers

import (
	"context"

	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/hub"
	"github.com/duet-rpc/duet-rpc/internal/protocol"
	"github.com/duet-rpc/duet-rpc/server"
)

// registerQueue registers what looks at the prompts that wait for their turn, and changes
// them. interruptSession takes one back.
func registerQueue(reg *server.Registry, d Domain) {
	f := sessionFamily
	handle(reg, d, f, "session.queue", func(ctx context.Context, h *hub.Hub, p protocol.SessionParams) (protocol.QueueResult, error) {
		return queueOf(ctx, h, p.SessionID)
	}, server.Doc("Lists the prompts that wait for their turn in a session's conversation, the next one first."))
	handle(reg, d, f, "session.editQueued", func(ctx context.Context, h *hub.Hub, p protocol.EditQueuedParams) (protocol.QueueResult, error) {
		if err := h.EditQueued(ctx, p.SessionID, p.Query); err != nil {
			return protocol.QueueResult{}, err
		}
		return queueOf(ctx, h, p.SessionID)
	}, server.Doc("Changes the text of a prompt that waits for its turn; what goes with it stays. One that has begun is refused (`bad_state`). All clients get the event queue_changed."))
	handle(reg, d, f, "session.moveQueued", func(ctx context.Context, h *hub.Hub, p protocol.MoveQueuedParams) (protocol.QueueResult, error) {
		if err := h.MoveQueued(ctx, p.SessionID, p.Before); err != nil {
			return protocol.QueueResult{}, err
		}
		return queueOf(ctx, h, p.SessionID)
	}, server.Doc("Moves a prompt that waits for its turn to another place in the queue of its conversation. One that has begun is refused (`bad_state`). All clients get the event queue_changed."))
}

func queueOf(ctx context.Context, h *hub.Hub, id string) (protocol.QueueResult, error) {
	list, err := h.Queued(ctx, id)
	if err != nil {
		return protocol.QueueResult{}, err
	}
	prompts := make([]*protocol.QueuedPrompt, 0, len(list))
	for _, s := range list {
		prompts = append(prompts, &protocol.QueuedPrompt{SessionID: s.SessionID, TaskID: domain.TaskName(s.Task), Query: s.Prompt, CreatedAt: s.Run.Created, Editable: s.IsWritten()})
	}
	prompts = fit(prompts, room(ctx))
	for n, p := range prompts {
		p.Truncated = p.Query != list[n].Prompt
	}
	return protocol.QueueResult{Queued: prompts}, nil
}
