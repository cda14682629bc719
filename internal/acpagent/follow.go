package acpagent

import (
	"context"

	"github.com/duet-rpc/duet-rpc/client"
	"github.com/duet-rpc/duet-rpc/internal/acpagent/update"
	"github.com/duet-rpc/duet-rpc/internal/acpagent/version2"
	"github.com/duet-rpc/duet-rpc/internal/wire"
)

// eventTypes are those that the client is told of.
var eventTypes = []string{
	wire.EventStatus, wire.EventConversation, wire.EventApproval, wire.EventResolved, wire.EventSettings, wire.EventDelta, wire.EventThinking, wire.EventPlan, wire.EventUsage,
	wire.EventTerminal, wire.EventTerminalExit, wire.EventError, wire.EventAgentUpdate, wire.EventAgentSession, wire.EventDeleted, wire.EventLagged,
}

// follow tells the client from now on what happens behind an event.
func (s *session) follow(ctx context.Context, since int64) error {
	sub, err := s.agent.hub.Subscribe(ctx, client.SubscribeOptions{Types: eventTypes, Session: s.id, Since: &since}, s.event)
	if err != nil {
		return err
	}
	s.mu.Lock()
	closed := s.closed
	s.sub = sub
	s.mu.Unlock()
	if closed {
		sub.Close()
		return nil
	}
	s.conn.Go(func(connected context.Context) {
		select {
		case <-sub.Done():
			s.subscriptionEnded(sub.Err())
		case <-s.ctx.Done():
		case <-connected.Done():
		}
	})
	return nil
}

// subscriptionEnded ends the turns of the client where nothing more is heard of the
// conversation.
func (s *session) subscriptionEnded(err error) {
	why := "the hub tells no more of this session; open it again to see how the turn goes on"
	if err != nil {
		why += ": " + message(err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return
	}
	for _, t := range s.turns {
		t.end(outcome{state: wire.Failed, err: why})
	}
}

// event tells the client of an event of the conversation.
func (s *session) event(e client.Event) {
	s.order.Lock()
	defer s.order.Unlock()
	if s.ctx.Err() != nil {
		return
	}
	d := wire.DataOf(e)
	switch e.Type {
	case wire.EventApproval:
		s.ask(wire.ApprovalOf(e))
		return
	case wire.EventResolved:
		s.answered(d.ApprovalID)
		return
	case wire.EventSettings, wire.EventAgentSession:
		s.settingsChanged()
		return
	}
	s.tell(s.translator.Event(e.Type, e.Seq, e.Timestamp, d)...)
	if e.Type == wire.EventStatus {
		s.stateChanged(d)
	}
}

// stateChanged takes a new state of a session of the conversation. All that it did was
// told before.
func (s *session) stateChanged(d wire.EventData) {
	s.mu.Lock()
	if !wire.Ended(d.State) {
		if d.State != wire.Queued && d.State != wire.Draft {
			s.running = d.SessionID
		}
		s.mu.Unlock()
		s.tellState(d.State)
		return
	}
	if s.running == d.SessionID {
		s.running = ""
	}
	o := outcomeOf(d)
	_, ours := s.ours[d.SessionID]
	if ours {
		s.ours[d.SessionID] = false
	}
	if o.code == orphaned {
		s.takeBack()
	}
	isAwaited := false
	for _, t := range s.turns {
		if t.run == d.SessionID {
			isAwaited = true
			t.end(o)
		}
	}
	s.mu.Unlock()
	if (!ours || s.version2) && d.State == wire.Failed && d.Error != "" {
		s.tell(update.Words("\n\n[the turn failed: %s]\n", d.Error))
	}
	s.tellEnd(o)
	if !isAwaited || s.version2 { // else the answer to the prompt comes first
		s.askOpen()
	}
}

// tellState tells of a state that is not the end of a turn, in version 2 of the protocol.
func (s *session) tellState(state string) {
	if !s.version2 {
		return
	}
	switch state {
	case wire.Running:
		s.tell(version2.State(version2.Running, ""))
	case wire.WaitingInput:
		s.tell(version2.State(version2.RequiresAction, ""))
	}
}

// tellEnd tells of the end of a turn, in version 2 of the protocol.
func (s *session) tellEnd(o outcome) {
	if !s.version2 {
		return
	}
	why, failed := o.stopped()
	if failed {
		why = version2.Failed
	}
	s.tell(version2.State(version2.Idle, why))
}
