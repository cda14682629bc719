package acpagent

import (
	"log/slog"
	"sync"
	"time"

	"github.com/duet-rpc/duet-rpc/client"
	"github.com/duet-rpc/duet-rpc/frame"
	"github.com/duet-rpc/duet-rpc/server"
)

// Options configure an agent.
type Options struct {
	Version string
	// Agent is the agent behind new sessions, unless the client chooses another;
	// "": the project's default one.
	Agent string
	// CancelOnDisconnect says that the turns that a client has begun end when it goes.
	CancelOnDisconnect bool
	// SavedFiles says that the agent behind reads files from the disk also where the
	// client offers them, with what is not saved.
	SavedFiles bool
	// Limits bound what the client sends.
	Limits frame.Limits
	Logger *slog.Logger
	// Trace, if set, sees each message, as [server.Options] has it.
	Trace func(c *server.Conn, sent bool, message []byte)
}

// questionWithin is how long a question waits for an answer in the editor; in the inbox
// it waits without end. A client that does not read is waited for as long.
const questionWithin = 30 * 24 * time.Hour

// mostLine is the longest message that goes out, in bytes.
const mostLine = 64 << 20

// An agent serves one client.
type agent struct {
	hub    *client.Client
	opts   Options
	client editor

	mu       sync.Mutex // guards the fields below
	sessions map[string]*session
	wanted   *signIn // nil: no agent wants anybody to sign in
}

// lookup is a session that the client has made or opened, or nil.
func (a *agent) lookup(id string) *session {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.sessions[id]
}

// find is lookup with an error for the client.
func (a *agent) find(id string) (*session, error) {
	if s := a.lookup(id); s != nil {
		return s, nil
	}
	return nil, notFound(id)
}

// keep makes a session one of the client's, in the place of one with the same id.
func (a *agent) keep(s *session) {
	a.mu.Lock()
	old := a.sessions[s.id]
	a.sessions[s.id] = s
	a.mu.Unlock()
	if old != nil {
		old.leave()
	}
}

// forget takes a session from the client's.
func (a *agent) forget(s *session) {
	a.mu.Lock()
	if a.sessions[s.id] == s {
		delete(a.sessions, s.id)
	}
	a.mu.Unlock()
	s.leave()
}
