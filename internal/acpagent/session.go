package acpagent

import (
	"bytes"
	"context"
	"sync"

	"github.com/duet-rpc/duet-rpc/client"
	"github.com/duet-rpc/duet-rpc/internal/acp"
	"github.com/duet-rpc/duet-rpc/internal/protocol"
	"github.com/duet-rpc/duet-rpc/internal/wire"
	"github.com/duet-rpc/duet-rpc/server"
)

// A session is a conversation of the hub that the client has made or opened. Its id is
// the conversation's own, also before the first prompt, with which the hub gets it.
type session struct {
	agent *agent
	conn  *server.Conn
	id    string

	version2 bool // of the protocol

	ctx context.Context // ends when the client has left the session
	end context.CancelFunc

	// order is held while an event is told, and while a turn is begun: its events
	// find whose it is.
	order      sync.Mutex
	translator translator // guarded by order
	settings   view       // what the client knows of settings; guarded by order

	mu        sync.Mutex     // guards the fields below
	start     *beginning     // nil: the hub has the conversation
	workspace *acp.Workspace // what the client said when it opened the session, until the next prompt has it; may be nil
	sub       *client.Subscription
	closed    bool
	turns     []*turn          // of the client, in the order of its prompts
	ours      map[string]bool  // sessions that the client has begun: whether they go on
	running   string           // the session that is under way; "": none
	work      foreground       // of version 2
	asking    map[string]asked // questions that the client is asked
	askAgain  []wire.Approval  // those that it is to be asked again, when it knows that the turn has ended
	told      []string         // steered messages of this client whose echo is still to come; of version 1
	inbox     []string         // questions as /inbox has numbered them last
	queue     []string         // prompts as /queue has numbered them last
}

// A beginning is what the first prompt begins a conversation with.
type beginning struct {
	workspace acp.Workspace
	from      string // the session behind which it is a fork; "": it is new
	agent     string
	mode      string
	model     string
	options   map[string]string
}

// sessionOf makes a session of a conversation; begin is nil of one that the hub has.
func (a *agent) sessionOf(conn *server.Conn, id string, begin *beginning) *session {
	s := &session{
		agent: a, conn: conn, id: id, start: begin, version2: a.client.isVersion2(),
		ours: make(map[string]bool), asking: make(map[string]asked),
	}
	s.ctx, s.end = context.WithCancel(context.Background())
	s.translator.Bytes = func(id string) ([]byte, error) {
		var b bytes.Buffer
		err := wire.WriteAttachment(s.ctx, a.hub, &b, id)
		return b.Bytes(), err
	}
	s.translator.Version2 = s.version2
	s.translator.ShowsTerminals = a.client.capabilities().Meta.TerminalOutput
	s.translator.IsOurs = func(run string) bool { return !s.version2 && s.isOurs(run) } // version 2 has each prompt told
	s.translator.IsTold = s.forgetTold
	return s
}

// beginning is what the first prompt begins the conversation with, or nil.
func (s *session) beginning() *beginning {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.start
}

// remark sends a message of Duet's own to the user. It is a notice, in version 1 a text of
// the agent that a format makes.
func (s *session) remark(severity, title, description, format string, args ...any) {
	if s.version2 {
		s.tell(acp.Notice{Kind: acp.KindNotice, Severity: severity, Title: title, Description: description})
		return
	}
	s.tell(words("\n\n["+format+"]\n", args...))
}

// tell tells the client of updates.
func (s *session) tell(updates ...any) {
	if s.version2 {
		updates = acp.Updates2(updates)
	}
	for _, u := range updates {
		if s.conn.Notify(s.ctx, acp.MethodSessionUpdate, acp.UpdateNotification{SessionID: s.id, Update: u}) != nil {
			return // it has gone
		}
	}
}

// leave ends what is done for the session. What runs goes on, and questions stay open.
func (s *session) leave() {
	s.mu.Lock()
	s.closed = true
	sub := s.sub
	s.mu.Unlock()
	s.end()
	if sub != nil {
		sub.Close()
	}
}

func (s *session) isOurs(run string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, is := s.ours[run]
	return is
}

// eventTypes are those that the client is told of.
var eventTypes = []string{
	protocol.TypeStatus, protocol.TypeConversation, protocol.TypeApproval, protocol.TypeResolved, protocol.TypeSettings, protocol.TypeDelta, protocol.TypeThinking, protocol.TypePlan, protocol.TypeUsage,
	protocol.TypeTerminal, protocol.TypeTerminalExit, protocol.TypeError, protocol.TypeUpdate, protocol.TypeAgentSession, protocol.TypeDeleted, protocol.TypeLagged, protocol.TypeQueue,
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
		s.tell(acp.Notice{Kind: acp.KindNotice, Severity: acp.SeverityError, Title: why})
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
	case protocol.TypeApproval:
		s.ask(wire.ApprovalOf(e))
		return
	case protocol.TypeResolved:
		s.answered(d.ApprovalID)
		return
	case protocol.TypeSettings, protocol.TypeAgentSession:
		s.backgroundChanged(d.Background)
		s.settingsChanged()
		return
	case protocol.TypeQueue:
		s.promptEdited(d)
		return
	}
	updates := s.translator.Event(e.Type, e.Seq, e.Timestamp, d)
	if s.version2 && d.EventType == wire.EntryMessage && d.Role == "user" && s.hold(d.SessionID, updates) {
		return
	}
	s.tell(updates...)
	if e.Type == protocol.TypeStatus {
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
