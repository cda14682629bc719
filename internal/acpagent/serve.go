package acpagent

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/sourcegraph/jsonrpc2"

	"github.com/duet-rpc/duet-rpc/client"
	"github.com/duet-rpc/duet-rpc/frame"
	"github.com/duet-rpc/duet-rpc/internal/acp"
	"github.com/duet-rpc/duet-rpc/internal/wire"
	"github.com/duet-rpc/duet-rpc/server"
)

// methodHint follows the name of an unknown method in the error.
const methodHint = "Duet is an agent of the Agent Client Protocol; what it can do stands in the answer to initialize"

// Serve serves the client at the other end of a transport until it goes, or ctx ends.
// The hub is the caller's to close.
func Serve(ctx context.Context, t server.Transport, hub *client.Client, o Options) error {
	a := &agent{hub: hub, opts: o, sessions: make(map[string]*session)}
	srv := server.New(a.methods(), server.Options{
		Limits: o.Limits, Logger: o.Logger, MaxLine: mostLine, CallTimeout: questionWithin, Trace: o.Trace,
		Cancellation:   server.Cancellation{Method: acp.MethodCancelRequest, Member: acp.CancelRequestMember, Tell: true},
		OnNotification: a.notified,
		MethodHint:     methodHint,
	})
	hub.Handle(readFile, a.readFile)
	err := srv.Serve(ctx, t, frame.NDJSON)
	a.close()
	return err
}

// methods are what a client may ask for.
func (a *agent) methods() *server.Registry {
	reg := server.NewRegistry()
	server.Handle(reg, acp.MethodInitialize, a.initialize)
	server.Handle(reg, acp.MethodAuthenticate, only(a, acp.Version1, acp.MethodAuthenticate, a.authenticate), server.LongRunning())
	server.Handle(reg, acp.MethodAuthLogin, only(a, acp.Version2, acp.MethodAuthLogin, a.authenticate), server.LongRunning())
	server.Handle(reg, acp.MethodLogout, only(a, acp.Version1, acp.MethodLogout, a.logout), server.LongRunning())
	server.Handle(reg, acp.MethodAuthLogout, only(a, acp.Version2, acp.MethodAuthLogout, a.logout), server.LongRunning())
	server.Handle(reg, acp.MethodSessionNew, spelled(a, a.newSession, acp.OpenedSession.Version2), server.LongRunning())
	server.Handle(reg, acp.MethodSessionLoad, only(a, acp.Version1, acp.MethodSessionLoad, a.load), server.LongRunning())
	server.Handle(reg, acp.MethodSessionResume, spelled(a, a.resume, acp.OpenedSession.Version2), server.LongRunning())
	server.Handle(reg, acp.MethodSessionFork, spelled(a, a.fork, acp.OpenedSession.Version2), server.LongRunning())
	server.Handle(reg, acp.MethodSessionList, a.list, server.LongRunning())
	server.Handle(reg, acp.MethodSessionClose, a.closeSession, server.LongRunning())
	server.Handle(reg, acp.MethodTerminalCancel, only(a, acp.Version2, acp.MethodTerminalCancel, a.cancelTask), server.LongRunning())
	server.Handle(reg, acp.MethodToolCallCancel, only(a, acp.Version2, acp.MethodToolCallCancel, a.cancelTask), server.LongRunning())
	server.Handle(reg, acp.MethodSessionDelete, a.deleteSession, server.LongRunning())
	server.Handle(reg, acp.MethodSessionSetMode, only(a, acp.Version1, acp.MethodSessionSetMode, a.setMode), server.LongRunning())
	server.Handle(reg, acp.MethodSessionSetValue, spelled(a, a.setConfigOption, acp.ConfigOptions.Version2), server.LongRunning())
	server.Handle(reg, acp.MethodSessionSteering, a.steer, server.LongRunning())
	server.Handle(reg, acp.MethodSessionPrompt, spelled(a, a.prompt, acp.PromptResponse.Version2), server.LongRunning(), server.Arriving(a.promptArrives))
	return reg
}

// initialize says who is here. It needs no hub.
func (a *agent) initialize(_ context.Context, p acp.InitializeRequest) (any, error) {
	a.client.initialize(p)
	present := acp.Supported
	r := acp.InitializeResponse{
		ProtocolVersion: acp.Version1,
		AgentCapabilities: acp.AgentCapabilities{
			LoadSession:        true,
			PromptCapabilities: acp.PromptCapabilities{Image: true, Audio: true, EmbeddedContext: true},
			MCPCapabilities:    acp.MCPCapabilities{HTTP: true, SSE: true},
			SessionCapabilities: acp.SessionCapabilities{
				List: present, Resume: present, Close: present, Delete: present, Fork: present, AdditionalDirectories: present, SystemPrompt: present,
			},
			Auth: acp.AgentAuthCapabilities{Logout: present},
		},
		AgentInfo:   acp.Implementation{Name: "duet-rpc", Title: "Duet", Version: a.opts.Version},
		AuthMethods: a.client.signInMethods(),
	}
	r.Meta.Steering.Supported = true
	if a.client.isVersion2() {
		return r.Version2(), nil
	}
	return r, nil
}

// spelled makes an answer as the client's version of the protocol has it.
func spelled[P, R any](a *agent, f func(context.Context, P) (R, error), as func(R) any) func(context.Context, P) (any, error) {
	return func(ctx context.Context, p P) (any, error) {
		r, err := f(ctx, p)
		if err == nil && a.client.isVersion2() {
			return as(r), nil
		}
		return r, err
	}
}

// only makes a method unknown to clients of the other version of the protocol.
func only[P, R any](a *agent, version int, method string, f func(context.Context, P) (R, error)) func(context.Context, P) (R, error) {
	return func(ctx context.Context, p P) (R, error) {
		if a.client.isVersion2() != (version == acp.Version2) {
			var none R
			return none, server.NewError(jsonrpc2.CodeMethodNotFound, "Method not found: "+method+" ("+methodHint+")", map[string]string{"method": method})
		}
		return f(ctx, p)
	}
}

// notified takes a notification of the client, in the order of its messages.
func (a *agent) notified(_ *server.Conn, method string, params json.RawMessage) {
	if method != acp.MethodSessionCancel {
		return // such as those of extensions
	}
	var p acp.SessionParams
	_ = json.Unmarshal(params, &p) // what cannot be read names no session
	if s := a.lookup(p.SessionID); s != nil {
		s.cancel()
	}
}

// close ends what the client has left behind.
func (a *agent) close() {
	a.mu.Lock()
	sessions := a.sessions
	a.sessions = make(map[string]*session)
	a.mu.Unlock()
	for _, s := range sessions {
		if a.opts.CancelOnDisconnect {
			s.interruptOurs()
		}
		s.leave()
	}
}

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

// notFound says that there is no such session.
func notFound(id string) error {
	return server.NewError(acp.CodeResourceNotFound, "Resource not found: no session has the id "+id, map[string]string{"sessionId": id})
}

// refusedFor is refused for a method that names a session.
func refusedFor(id string, err error) error {
	if errors.Is(err, client.Kind("session_not_found")) {
		return notFound(id)
	}
	return refused(err)
}

// refused is an error of the hub as the client is told it.
func refused(err error) error {
	var e *client.Error
	switch {
	case err == nil:
		return nil
	case errors.Is(err, client.ErrTooLong):
		return server.NewError(jsonrpc2.CodeInvalidParams, strings.TrimPrefix(err.Error(), "client: "), nil)
	case errors.Is(err, client.Kind("session_not_found")):
		return server.NewError(acp.CodeResourceNotFound, "Resource not found: "+message(err), nil)
	case errors.As(err, &e):
		if e.Code == jsonrpc2.CodeInvalidParams {
			return server.NewError(e.Code, e.Message, nil)
		}
		return server.NewError(jsonrpc2.CodeInternalError, message(err), nil)
	}
	return server.NewError(jsonrpc2.CodeInternalError, "Duet's hub does not answer; `duet-rpc daemon status` says how it is: "+err.Error(), nil)
}

// message is what the hub says, as a sentence, or what else went wrong.
func message(err error) string {
	if r, ok := wire.RefusalOf(err); ok {
		return r.Message
	}
	return err.Error()
}
