package hub

import (
	"context"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/clientenv"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/store"
)

// Steer sends a message to the agent that works in a run's conversation, in the middle of its
// turn. It returns the session that received the message. injected is false, and nothing has
// changed, if no agent works there or the agent does not accept messages.
func (h *Hub) Steer(ctx context.Context, id, text string) (s domain.Session, injected bool, err error) {
	named, err := h.query.Session(ctx, id)
	if err != nil {
		return s, false, err
	}
	live := h.liveIn(named.Run.Thread)
	if live == nil || clientenv.IsRestricted(ctx) && !live.run.Restricted { // a restricted client may not use an agent of the project's file
		return s, false, nil
	}
	h.mu.Lock()
	lease := live.lease
	h.mu.Unlock()
	if lease == nil { // starting
		return s, false, nil
	}
	result, err := lease.Steer(ctx, catalog.SteerParams{TaskID: live.run.UUID, Text: text})
	if err != nil || result.Outcome != catalog.SteerInjected {
		h.log.Debug("the agent did not accept a message during its turn", "run", live.run.UUID, "err", err)
		return s, false, ctx.Err()
	}
	h.intake.EndMessage(ctx, live.run.ID)
	if err := h.write(ctx, func(store.Tx) error { return nil }); err != nil { // waits until the message is committed
		return s, true, err
	}
	s, err = h.query.ByRun(ctx, live.run.ID)
	return s, true, err
}

// liveIn returns the active run of a conversation, or nil.
func (h *Hub) liveIn(thread int64) *liveRun {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, live := range h.live {
		if live.run.Thread == thread {
			return live
		}
	}
	return nil
}
