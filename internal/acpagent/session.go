package acpagent

import (
	"bytes"
	"context"
	"sync"

	"github.com/duet-rpc/duet-rpc/client"
	"github.com/duet-rpc/duet-rpc/internal/acpagent/schema"
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

	mu        sync.Mutex        // guards the fields below
	start     *beginning        // nil: the hub has the conversation
	workspace *schema.Workspace // what the client said when it opened the session, until the next prompt has it; may be nil
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
	workspace schema.Workspace
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
		s.tell(schema.Notice{Kind: schema.KindNotice, Severity: severity, Title: title, Description: description})
		return
	}
	s.tell(words("\n\n["+format+"]\n", args...))
}

// tell tells the client of updates.
func (s *session) tell(updates ...any) {
	if s.version2 {
		updates = updates2(updates)
	}
	for _, u := range updates {
		if s.conn.Notify(s.ctx, schema.SessionUpdate, schema.UpdateNotification{SessionID: s.id, Update: u}) != nil {
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
