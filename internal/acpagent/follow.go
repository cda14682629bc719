package acpagent

import (
	"context"

	"github.com/duet-rpc/duet-rpc/client"
	"github.com/duet-rpc/duet-rpc/internal/acpagent/schema"
	"github.com/duet-rpc/duet-rpc/internal/wire"
)

// eventTypes are those that the client is told of.
var eventTypes = []string{
	wire.EventStatus, wire.EventConversation, wire.EventApproval, wire.EventResolved, wire.EventSettings, wire.EventDelta, wire.EventThinking, wire.EventPlan, wire.EventUsage,
	wire.EventTerminal, wire.EventTerminalExit, wire.EventError, wire.EventAgentUpdate, wire.EventAgentSession, wire.EventDeleted, wire.EventLagged, wire.EventQueue,
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
	isClosed := s.closed
	if !isClosed {
		for _, t := range s.turns {
			t.end(outcome{state: wire.Failed, err: why})
		}
	}
	s.mu.Unlock()
	if s.version2 && !isClosed { // the prompt of a turn that runs has its answer
		s.order.Lock()
		defer s.order.Unlock()
		s.tell(schema.Notice{Kind: schema.KindNotice, Severity: schema.Error, Title: why})
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
		s.backgroundChanged(d.Background)
		s.settingsChanged()
		return
	case wire.EventQueue:
		s.promptEdited(d)
		return
	}
	updates := s.translator.Event(e.Type, e.Seq, e.Timestamp, d)
	if s.version2 && d.EventType == wire.EntryMessage && d.Role == "user" && s.hold(d.SessionID, updates) {
		return
	}
	s.tell(updates...)
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
		s.runChanged(d.SessionID, d.State)
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
	isAwaited := s.endTurns(d.SessionID, o)
	s.mu.Unlock()
	switch {
	case s.version2:
		s.runEnded(d.SessionID, o, isAwaited)
	case !ours && d.State == wire.Failed && d.Error != "":
		s.tell(words("\n\n[the turn failed: %s]\n", d.Error))
	}
	if !isAwaited || s.version2 { // else the answer to the prompt comes first
		s.askOpen()
	}
}

// endTurns ends the client's turns that are this session of the hub, and reports whether
// there is one. s.mu is held.
func (s *session) endTurns(run string, o outcome) (isAwaited bool) {
	for _, t := range s.turns {
		if t.run == run {
			isAwaited = true
			t.end(o)
		}
	}
	return isAwaited
}
