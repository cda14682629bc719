package acpagent

import (
	"bytes"
	"context"
	"sync"

	"github.com/duet-rpc/duet-rpc/client/eventstream"
	"github.com/duet-rpc/duet-rpc/internal/acp"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/hubclient"
	"github.com/duet-rpc/duet-rpc/internal/protocol"
	"github.com/duet-rpc/duet-rpc/server"
)

// A session is one of the hub's sessions that the client has created or opened, with the same id.
// The hub creates its own with the first prompt.
type session struct {
	agent *agent
	conn  *server.Conn
	id    string

	hasStates bool // see [acp.Client.HasStates]

	ctx context.Context // ends when the client leaves the session
	end context.CancelFunc

	// order is locked while an event is sent to the client, and while a turn begins, so that the
	// events of a new turn are assigned to it.
	order      sync.Mutex
	translator translator // guarded by order
	settings   view       // as sent to the client; guarded by order

	mu        sync.Mutex     // guards the fields below
	start     *beginning     // nil: the hub has the session
	workspace *acp.Workspace // the client's workspace for the next prompt; may be nil
	sub       *eventstream.Subscription
	closed    bool
	turns     []*turn              // of the client, in the order of its prompts
	ours      map[string]bool      // sessions that the client has begun; the value means that they are running
	running   string               // the running session; "": none
	work      foreground           // of a client with states
	asking    map[string]asked     // questions that the client is being asked
	askAgain  []hubclient.Approval // questions to repeat after the client has the end of the turn
	steered   []string             // steered messages without their echo yet; none for a client with states
	inbox     []string             // questions by their number in the last list of /inbox
	queue     []string             // prompts by their number in the last list of /queue
}

// A beginning is the data with which the first prompt begins a session.
type beginning struct {
	workspace acp.Workspace
	from      string // the session to fork; "": none
	agent     string
	mode      string
	model     string
	options   map[string]string
}

// sessionOf makes the client's view of a session. begin is nil if the hub has the session.
func (a *agent) sessionOf(conn *server.Conn, id string, begin *beginning) *session {
	client := a.client.is()
	s := &session{
		agent: a, conn: conn, id: id, start: begin, hasStates: client.HasStates(),
		ours: make(map[string]bool), asking: make(map[string]asked),
	}
	s.ctx, s.end = context.WithCancel(context.Background())
	s.translator.Bytes = func(id string) ([]byte, error) {
		var b bytes.Buffer
		err := hubclient.WriteAttachment(s.ctx, a.hub, &b, id)
		return b.Bytes(), err
	}
	s.translator.Client = client
	s.translator.IsOurs = func(turn string) bool {
		return !s.hasStates && s.isOurs(turn) // a client with states gets each prompt
	}
	s.translator.IsEcho = s.forgetSteered
	return s
}

// beginning returns the data for the first prompt, or nil after it.
func (s *session) beginning() *beginning {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.start
}

// remark sends a message of Duet itself to the user: a notice to a client with states, and formatted
// agent text to any other.
func (s *session) remark(severity, title, description, format string, args ...any) {
	if s.hasStates {
		s.send(acp.Notice{Kind: acp.KindNotice, Severity: severity, Title: title, Description: description})
		return
	}
	s.send(words("\n\n["+format+"]\n", args...))
}

// send sends updates to the client.
func (s *session) send(updates ...any) {
	for _, u := range s.translator.Client.Updates(updates...) {
		if s.conn.Notify(s.ctx, acp.MethodSessionUpdate, acp.UpdateNotification{SessionID: s.id, Update: u}) != nil {
			return // the client has disconnected
		}
	}
}

// leave stops following the session. Its turn continues, and its questions stay open.
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

func (s *session) isOurs(id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, is := s.ours[id]
	return is
}

// eventKinds are the events that the client needs.
var eventKinds = []string{
	protocol.KindTurnState, protocol.KindItemAdded, protocol.KindItemChanged, protocol.KindApprovalOpened, protocol.KindApprovalClosed,
	protocol.KindSession, protocol.KindText, protocol.KindThought, protocol.KindPlan, protocol.KindUsage, protocol.KindTerminalOutput,
	protocol.KindTerminalExited, protocol.KindAgentError, protocol.KindAgentUpdate, protocol.KindAgentSession, protocol.KindSessionDeleted,
	protocol.KindLagged, protocol.KindQueue,
}

// follow sends the events after since to the client.
func (s *session) follow(ctx context.Context, since int64) error {
	sub, err := eventstream.Subscribe(ctx, s.agent.hub, eventstream.Options{Kinds: eventKinds, Session: s.id, Since: &since}, s.event)
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

// subscriptionEnded ends the client's turns after the subscription to the session has
// failed.
func (s *session) subscriptionEnded(err error) {
	why := "the hub sends no more events of this session; open it again to follow the turn"
	if err != nil {
		why += ": " + message(err)
	}
	s.mu.Lock()
	isClosed := s.closed
	if !isClosed {
		for _, t := range s.turns {
			t.end(outcome{state: domain.Failed, err: why})
		}
	}
	s.mu.Unlock()
	if s.hasStates && !isClosed { // the prompt of a running turn was already answered
		s.order.Lock()
		defer s.order.Unlock()
		s.send(acp.Notice{Kind: acp.KindNotice, Severity: acp.SeverityError, Title: why})
	}
}

// event handles an event of the session.
func (s *session) event(e eventstream.Event) {
	s.order.Lock()
	defer s.order.Unlock()
	if s.ctx.Err() != nil {
		return
	}
	data := hubclient.DataOf(e)
	switch d := data.(type) {
	case *protocol.ApprovalOpenedEvent:
		s.ask(hubclient.ApprovalOf(e, d))
		return
	case *protocol.ApprovalClosedEvent:
		s.answered(d.ApprovalID)
		return
	case *protocol.SessionEvent:
		s.settingsChanged()
		return
	case *protocol.AgentSessionEvent:
		s.backgroundChanged(d.Background)
		s.settingsChanged()
		return
	case *protocol.QueueEvent:
		s.promptEdited(e.TurnUUID, d)
		return
	}
	updates := s.translator.Event(e, data)
	if d, ok := data.(*protocol.Item); ok && s.hasStates && d.Type == protocol.ItemMessage && d.Role == "user" && s.hold(e.TurnUUID, updates) {
		return
	}
	s.send(updates...)
	if d, ok := data.(*protocol.TurnStateEvent); ok {
		s.stateChanged(e.TurnUUID, d)
	}
}

// stateChanged handles a new state of a turn of the session. All of its earlier events were handled
// before.
func (s *session) stateChanged(turn string, d *protocol.TurnStateEvent) {
	s.mu.Lock()
	if !d.State.Ended() {
		if d.State != domain.Queued && d.State != domain.Draft {
			s.running = turn
		}
		s.mu.Unlock()
		s.turnChanged(turn, d.State)
		return
	}
	if s.running == turn {
		s.running = ""
	}
	o := outcomeOf(d)
	_, ours := s.ours[turn]
	if ours {
		s.ours[turn] = false
	}
	if o.code == orphaned {
		s.takeBack()
	}
	isAwaited := s.endTurns(turn, o)
	s.mu.Unlock()
	switch {
	case s.hasStates:
		s.turnEnded(turn, o, isAwaited)
	case !ours && d.State == domain.Failed && d.Error != "":
		s.send(words("\n\n[the turn failed: %s]\n", d.Error))
	}
	if !isAwaited || s.hasStates { // else the response to the prompt comes first
		s.askOpen()
	}
}

// endTurns ends the client's turns that are this turn of the hub, and reports whether there was
// one. The caller holds s.mu.
func (s *session) endTurns(id string, o outcome) (isAwaited bool) {
	for _, t := range s.turns {
		if t.id == id {
			isAwaited = true
			t.end(o)
		}
	}
	return isAwaited
}
