// Package acpagent is Duet as an agent of the Agent Client Protocol: an editor starts
// `duet-rpc acp`, and its sessions are the hub's.
//
//	editor ── lines on stdio ──► serve.go: methods ──► session.go, prompt.go ── client ──► hub
//	   ▲                                                                                   │
//	   └── session/update ◄── foreground.go ◄── update_translator.go ◄──── events ─────────┘
//	   └── questions ◄─────── asking.go ◄───────────────────────────────────┘
//
// One agent serves both versions of the protocol: package acp writes each message in the client's form
// (acp.Client). foreground.go sends the states of a session, which only some clients receive.
//
// It is a client of the hub like any other and keeps no state: a turn continues after its end, and
// a question stays in the inbox.
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
	"github.com/duet-rpc/duet-rpc/internal/hubclient"
	"github.com/duet-rpc/duet-rpc/server"
)

// methodHint follows the name of an unknown method in the error.
const methodHint = "Duet is an agent of the Agent Client Protocol; the answer to initialize lists its capabilities"

// Serve serves the client at the other end of a transport until the client disconnects, or ctx
// ends. The caller closes the hub.
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

// methods returns the methods for clients.
func (a *agent) methods() *server.Registry {
	reg := server.NewRegistry()
	serve(a, reg, acp.MethodInitialize, a.initialize)
	long := server.LongRunning()
	for _, method := range []string{acp.MethodAuthenticate, acp.MethodAuthLogin} {
		serve(a, reg, method, a.authenticate, long)
	}
	for _, method := range []string{acp.MethodLogout, acp.MethodAuthLogout} {
		serve(a, reg, method, a.logout, long)
	}
	serve(a, reg, acp.MethodSessionNew, a.newSession, long)
	serve(a, reg, acp.MethodSessionLoad, a.load, long)
	serve(a, reg, acp.MethodSessionResume, a.resume, long)
	serve(a, reg, acp.MethodSessionFork, a.fork, long)
	serve(a, reg, acp.MethodSessionList, a.list, long)
	serve(a, reg, acp.MethodSessionClose, a.closeSession, long)
	for _, method := range []string{acp.MethodTerminalCancel, acp.MethodToolCallCancel} {
		serve(a, reg, method, a.cancelTask, long)
	}
	serve(a, reg, acp.MethodSessionDelete, a.deleteSession, long)
	serve(a, reg, acp.MethodSessionSetMode, a.setMode, long)
	serve(a, reg, acp.MethodSessionSetValue, a.setConfigOption, long)
	serve(a, reg, acp.MethodSessionSteering, a.steer, long)
	serve(a, reg, acp.MethodSessionPrompt, a.prompt, long, server.Arriving(a.promptArrives))
	return reg
}

// initialize reports Duet's capabilities. It needs no hub.
func (a *agent) initialize(_ context.Context, p acp.InitializeRequest) (acp.InitializeResponse, error) {
	a.client.initialize(p)
	present := acp.Supported
	r := acp.InitializeResponse{
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
	return r, nil
}

// serve registers a method. It is unknown to clients whose version of the protocol lacks it, and its
// result has the client's form.
func serve[P, R any](
	a *agent, reg *server.Registry, method string, f func(context.Context, P) (R, error), options ...server.Option,
) {
	server.Handle(reg, method, func(ctx context.Context, p P) (any, error) {
		if !a.client.is().Knows(method) {
			text := "Method not found: " + method + " (" + methodHint + ")"
			return nil, server.NewError(jsonrpc2.CodeMethodNotFound, text, map[string]string{"method": method})
		}
		r, err := f(ctx, p)
		if err != nil {
			return nil, err
		}
		return a.client.is().Result(r), nil
	}, options...)
}

// notified handles a notification of the client, in the order of its messages.
func (a *agent) notified(_ *server.Conn, method string, params json.RawMessage) {
	if method != acp.MethodSessionCancel {
		return // such as notifications of extensions
	}
	var p acp.SessionParams
	_ = json.Unmarshal(params, &p) // an unreadable one names no session
	if s := a.lookup(p.SessionID); s != nil {
		s.cancel()
	}
}

// close leaves the client's sessions.
func (a *agent) close() {
	a.mu.Lock()
	sessions := a.sessions
	a.sessions = make(map[string]*session)
	a.mu.Unlock()
	for _, s := range sessions {
		if a.opts.CancelOnDisconnect {
			s.interruptOwn()
		}
		s.leave()
	}
}

// Options configure an agent.
type Options struct {
	Version string
	// Agent is the agent of new sessions, unless the client chooses another; "": the project's
	// default.
	Agent string
	// CancelOnDisconnect means that a client's turns end when it disconnects.
	CancelOnDisconnect bool
	// SavedFiles means that the agent reads files from the disk, even if the client offers its
	// unsaved versions.
	SavedFiles bool
	// Limits limit the client's messages.
	Limits frame.Limits
	Logger *slog.Logger
	// Trace, if set, receives each message, as in [server.Options].
	Trace func(c *server.Conn, sent bool, message []byte)
}

// questionWithin is how long a question waits for an answer in the editor. In the inbox it waits
// without limit. The same limit applies to a client that does not read.
const questionWithin = 30 * 24 * time.Hour

// mostLine limits a sent message, in bytes.
const mostLine = 64 << 20

// An agent serves one client.
type agent struct {
	hub    *client.Client
	opts   Options
	client editor

	mu       sync.Mutex // guards the fields below
	sessions map[string]*session
	wanted   *signIn // nil: no agent requires a sign-in
}

// lookup returns a session that the client has created or opened, or nil.
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

// keep registers a session, in place of one with the same id.
func (a *agent) keep(s *session) {
	a.mu.Lock()
	old := a.sessions[s.id]
	a.sessions[s.id] = s
	a.mu.Unlock()
	if old != nil {
		old.leave()
	}
}

// forget removes a session.
func (a *agent) forget(s *session) {
	a.mu.Lock()
	if a.sessions[s.id] == s {
		delete(a.sessions, s.id)
	}
	a.mu.Unlock()
	s.leave()
}

// notFound returns the error for an unknown session.
func notFound(id string) error {
	return server.NewError(acp.CodeResourceNotFound, "Resource not found: no session has the id "+id, map[string]string{"sessionId": id})
}

// isNotFound reports whether the hub knows no session of an id.
func isNotFound(err error) bool {
	return errors.Is(err, client.Kind("not_found")) || errors.Is(err, client.Kind("session_not_found"))
}

// refusedFor is refused for a method that names a session.
func refusedFor(id string, err error) error {
	if isNotFound(err) {
		return notFound(id)
	}
	return refused(err)
}

// refused converts an error of the hub for the client.
func refused(err error) error {
	var e *client.Error
	switch {
	case err == nil:
		return nil
	case errors.Is(err, client.ErrTooLong):
		return server.NewError(jsonrpc2.CodeInvalidParams, strings.TrimPrefix(err.Error(), "client: "), nil)
	case isNotFound(err):
		return server.NewError(acp.CodeResourceNotFound, "Resource not found: "+message(err), nil)
	case errors.As(err, &e):
		if e.Code == jsonrpc2.CodeInvalidParams {
			return server.NewError(e.Code, e.Message, nil)
		}
		return server.NewError(jsonrpc2.CodeInternalError, message(err), nil)
	}
	return server.NewError(jsonrpc2.CodeInternalError, "Duet's daemon does not answer; `duet-rpc daemon status` shows its state: "+err.Error(),
		nil)
}

// message returns the hub's message as a sentence, or the text of another error.
func message(err error) string {
	if r, ok := hubclient.RefusalOf(err); ok {
		return r.Message
	}
	return err.Error()
}
