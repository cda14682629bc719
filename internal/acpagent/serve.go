package acpagent

import (
	"context"
	"encoding/json"

	"github.com/sourcegraph/jsonrpc2"

	"github.com/duet-rpc/duet-rpc/client"
	"github.com/duet-rpc/duet-rpc/frame"
	"github.com/duet-rpc/duet-rpc/internal/acpagent/schema"
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
		Cancellation:   server.Cancellation{Method: schema.CancelRequest, Member: schema.CancelRequestMember, Tell: true},
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
	server.Handle(reg, schema.Initialize, a.initialize)
	server.Handle(reg, schema.Authenticate, only(a, schema.Version1, schema.Authenticate, a.authenticate), server.LongRunning())
	server.Handle(reg, schema.AuthLogin, only(a, schema.Version2, schema.AuthLogin, a.authenticate), server.LongRunning())
	server.Handle(reg, schema.Logout, only(a, schema.Version1, schema.Logout, a.logout), server.LongRunning())
	server.Handle(reg, schema.AuthLogout, only(a, schema.Version2, schema.AuthLogout, a.logout), server.LongRunning())
	server.Handle(reg, schema.SessionNew, spelled(a, a.newSession, opened2), server.LongRunning())
	server.Handle(reg, schema.SessionLoad, only(a, schema.Version1, schema.SessionLoad, a.load), server.LongRunning())
	server.Handle(reg, schema.SessionResume, spelled(a, a.resume, opened2), server.LongRunning())
	server.Handle(reg, schema.SessionFork, spelled(a, a.fork, opened2), server.LongRunning())
	server.Handle(reg, schema.SessionList, a.list, server.LongRunning())
	server.Handle(reg, schema.SessionClose, a.closeSession, server.LongRunning())
	server.Handle(reg, schema.TerminalCancel, only(a, schema.Version2, schema.TerminalCancel, a.cancelTask), server.LongRunning())
	server.Handle(reg, schema.ToolCallCancel, only(a, schema.Version2, schema.ToolCallCancel, a.cancelTask), server.LongRunning())
	server.Handle(reg, schema.SessionDelete, a.deleteSession, server.LongRunning())
	server.Handle(reg, schema.SessionSetMode, only(a, schema.Version1, schema.SessionSetMode, a.setMode), server.LongRunning())
	server.Handle(reg, schema.SessionSetValue, spelled(a, a.setConfigOption, configOptions2), server.LongRunning())
	server.Handle(reg, schema.SessionSteering, a.steer, server.LongRunning())
	server.Handle(reg, schema.SessionPrompt, spelled(a, a.prompt, accepted2), server.LongRunning(), server.Arriving(a.promptArrives))
	return reg
}

// initialize says who is here. It needs no hub.
func (a *agent) initialize(_ context.Context, p schema.InitializeRequest) (any, error) {
	a.client.initialize(p)
	present := &schema.Present{}
	r := schema.InitializeResponse{
		ProtocolVersion: schema.Version1,
		AgentCapabilities: schema.AgentCapabilities{
			LoadSession:        true,
			PromptCapabilities: schema.PromptCapabilities{Image: true, Audio: true, EmbeddedContext: true},
			MCPCapabilities:    schema.MCPCapabilities{HTTP: true, SSE: true},
			SessionCapabilities: schema.SessionCapabilities{
				List: present, Resume: present, Close: present, Delete: present, Fork: present, AdditionalDirectories: present, SystemPrompt: present,
			},
			Auth: schema.AgentAuthCapabilities{Logout: present},
		},
		AgentInfo:   schema.Implementation{Name: "duet-rpc", Title: "Duet", Version: a.opts.Version},
		AuthMethods: a.client.signInMethods(),
	}
	r.Meta.Steering.Supported = true
	if a.client.isVersion2() {
		return initialized2(r), nil
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
		if a.client.isVersion2() != (version == schema.Version2) {
			var none R
			return none, server.NewError(jsonrpc2.CodeMethodNotFound, "Method not found: "+method+" ("+methodHint+")", map[string]string{"method": method})
		}
		return f(ctx, p)
	}
}

// notified takes a notification of the client, in the order of its messages.
func (a *agent) notified(_ *server.Conn, method string, params json.RawMessage) {
	if method != schema.SessionCancel {
		return // such as those of extensions
	}
	var p schema.SessionRequest
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
