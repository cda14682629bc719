package hub

import (
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/store"
)

func (h *Hub) announceState(t store.Tx, run domain.Run, thread domain.Thread, from domain.State, reason string) error {
	changed := domain.RunStateChanged{
		ThreadUUID: thread.UUID, From: from, To: run.State, Title: run.Title, Agent: run.Agent, Reason: reason, StopReason: run.Stop,
	}
	if run.State.Ended() || run.State == domain.Interrupting {
		changed.Error, changed.ErrorCode, changed.SignIn = run.Error, run.ErrorCode, run.SignIn
	}
	if run.Parent != 0 {
		parent, err := t.Run(h.ctx, run.Parent)
		if err != nil {
			return err
		}
		changed.ParentSession = parent.SessionID
	}
	return h.announce(t, run, changed)
}

// announce adds an event of a run to the log.
func (h *Hub) announce(t store.Tx, run domain.Run, p domain.Payload) error {
	_, err := t.Append(run.Event(p))
	return err
}
