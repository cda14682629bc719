package hub

import (
	"context"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/restricted"
	"github.com/duet-rpc/duet-rpc/internal/store"
)

// Steer gives a message to the agent that works in the conversation of a run, without waiting
// for the end of its turn. injected is false where no agent works there, or it cannot take
// the message: then nothing has happened. What it returns is the session that has the message.
func (h *Hub) Steer(ctx context.Context, id, text string) (s domain.Session, injected bool, err error) {
	named, err := h.query.Session(ctx, id)
	if err != nil {
		return s, false, err
	}
	live := h.liveIn(named.Run.Thread)
	if live == nil || restricted.Is(ctx) && !live.run.Restricted { // an agent that the project defines is not for everybody
		return s, false, nil
	}
	h.mu.Lock()
	lease := live.lease
	h.mu.Unlock()
	if lease == nil { // it is just being started
		return s, false, nil
	}
	result, err := lease.Steer(ctx, catalog.SteerParams{TaskID: live.run.UUID, Text: text})
	if err != nil || result.Outcome != catalog.SteerInjected {
		h.log.Debug("an agent did not take a message while it works", "run", live.run.UUID, "err", err)
		return s, false, ctx.Err()
	}
	h.intake.EndMessage(ctx, live.run.ID)
	if err := h.write(ctx, func(store.Tx) error { return nil }); err != nil { // behind the message, which is kept now
		return s, true, err
	}
	s, err = h.query.ByRun(ctx, live.run.ID)
	return s, true, err
}

// liveIn is the run of a conversation that has an agent, or nil.
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
