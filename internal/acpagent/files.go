package acpagent

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/sourcegraph/jsonrpc2"

	"github.com/duet-rpc/duet-rpc/internal/acp"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/server"
)

// readFile is the method by which the hub reads files for sessions that were begun with
// reads_files (docs/protocol.md, "Files").
const readFile = "file.read"

// readsFiles reports whether the agent behind the session reads files as the client has them.
func (a *agent) readsFiles() bool {
	return !a.opts.SavedFiles && a.client.capabilities().FS.ReadTextFile
}

var errNotOurs = errors.New("this client has no such session")

// readFile reads a file as the client has it, for a turn that the client has begun.
func (a *agent) readFile(ctx context.Context, params json.RawMessage) (any, error) {
	var p struct {
		TurnUUID string `json:"turn_uuid"`
		Path     string `json:"path"`
	}
	if err := json.Unmarshal(params, &p); err != nil {
		return nil, err
	}
	s := a.ofTurn(ctx, p.TurnUUID)
	if s == nil {
		return nil, errNotOurs
	}
	var file struct {
		Content string `json:"content"`
	}
	err := s.conn.Call(ctx, acp.MethodReadTextFile, map[string]string{"sessionId": s.id, "path": p.Path}, &file)
	return map[string]string{"text": file.Content}, err
}

// ofTurn returns the session in which the client has begun a turn, or nil. It waits for turns that
// are just beginning, because an agent may call before the hub has answered.
func (a *agent) ofTurn(ctx context.Context, id string) *session {
	for _, beginning := range a.beginning() {
		select {
		case <-beginning:
		case <-ctx.Done():
		}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, s := range a.sessions {
		if s.isOurs(id) {
			return s
		}
	}
	return nil
}

// beginning returns a channel for each turn that is just beginning. The channel is closed when
// the hub has begun the turn.
func (a *agent) beginning() (list []<-chan struct{}) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, s := range a.sessions {
		s.mu.Lock()
		for _, t := range s.turns {
			list = append(list, t.begun)
		}
		s.mu.Unlock()
	}
	return list
}

// An editor is the client that has introduced itself.
type editor struct {
	mu     sync.Mutex // guards client
	client acp.Client
}

// initialize stores the client's description from its first request.
func (e *editor) initialize(p acp.InitializeRequest) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.client = p.Accept(0)
}

func (e *editor) is() acp.Client {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.client
}

func (e *editor) capabilities() acp.ClientCapabilities { return e.is().Can }

func (e *editor) title() string {
	who := e.is().Info
	return cmp.Or(who.Title, who.Name, "a client")
}

// The sign-in methods that every client is offered, whichever agent is behind the session.
// Methods of the agent itself come with its error that asks for a sign-in.
const (
	signInByAgent    = "agent"
	signInInTerminal = "terminal"
)

// LoginFlag is the program's flag that signs in, in a terminal.
const LoginFlag = "--login"

// signInMethods returns the sign-in methods that the client can use. For a terminal, the client
// appends a method's arguments to those with which it starts Duet.
func (e *editor) signInMethods() []acp.AuthMethod {
	var list []acp.AuthMethod
	if e.capabilities().SignsInInTerminal() {
		list = append(list, acp.AuthMethod{
			ID: signInInTerminal, Name: "Sign in to the agent in a terminal", Description: "The agent behind Duet lists its ways to sign in there",
			Type: "terminal", Args: []string{LoginFlag},
		})
	}
	return append(list, acp.AuthMethod{
		ID: signInByAgent, Name: "Have the agent sign you in", Description: "The agent behind Duet signs you in itself, mostly in your browser",
	})
}

// A signIn is the latest sign-in request of an agent.
type signIn struct{ agent string }

// mustSignIn notes that an agent requires a sign-in.
func (a *agent) mustSignIn(agent string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.wanted = &signIn{agent}
}

// signsInTo returns the agent that the client signs in to and out of: the latest one that
// required a sign-in, or else the agent of new sessions. "" is the default agent.
func (a *agent) signsInTo() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.wanted != nil {
		return cmp.Or(a.wanted.agent, a.opts.Agent)
	}
	return a.opts.Agent
}

// authenticate signs in to the latest agent that required it, or else to the agent of new
// sessions. It succeeds if the agent requires no sign-in, since some clients call it at each
// start.
func (a *agent) authenticate(ctx context.Context, p acp.AuthenticateRequest) (acp.Empty, error) {
	a.mu.Lock()
	wanted := a.wanted
	a.mu.Unlock()
	params := map[string]string{}
	if name := a.signsInTo(); name != "" {
		params["agent"] = name
	}
	if p.MethodID != signInByAgent && p.MethodID != signInInTerminal {
		params["method"] = p.MethodID // a method of the agent itself
		return acp.Empty{}, a.signIn(ctx, params)
	}
	var checked struct {
		Agent  string
		Report struct {
			SignedIn string `json:"signed_in"`
			Account  string
			Methods  []domain.AuthMethod
		}
	}
	if err := a.hub.Call(ctx, "agent.check", params, &checked, untilDone); err != nil {
		return acp.Empty{}, refused(err)
	}
	switch is := checked.Report.SignedIn; {
	case is == "yes", is == "not_needed", is == "opens_sessions" && (wanted == nil || p.MethodID == signInInTerminal):
		return acp.Empty{}, a.isSignedIn()
	case p.MethodID == signInInTerminal:
		return acp.Empty{}, server.NewError(acp.CodeAuthRequired, fmt.Sprintf(
			"Authentication required: %s reports that you are not signed in: %s", checked.Agent, checked.Report.Account,
		), nil)
	}
	i := slices.IndexFunc(checked.Report.Methods, func(m domain.AuthMethod) bool { return m.Type == "agent" || m.Type == "" })
	if i < 0 {
		return acp.Empty{}, server.NewError(jsonrpc2.CodeInternalError, fmt.Sprintf(
			"%s cannot sign you in by itself: run `duet-rpc agents login %s` in a terminal", checked.Agent, checked.Agent,
		), nil)
	}
	params["method"] = checked.Report.Methods[i].ID
	return acp.Empty{}, a.signIn(ctx, params)
}

// logout signs out of the agent behind the session. It fails if the agent offers no sign-out.
func (a *agent) logout(ctx context.Context, _ struct{}) (acp.Empty, error) {
	params := map[string]string{}
	if name := a.signsInTo(); name != "" {
		params["agent"] = name
	}
	return acp.Empty{}, refused(a.hub.Call(ctx, "agent.logout", params, nil, untilDone))
}

// signIn makes an agent sign in.
func (a *agent) signIn(ctx context.Context, params map[string]string) error {
	if err := a.hub.Call(ctx, "agent.login", params, nil, untilDone); err != nil {
		return refused(err)
	}
	return a.isSignedIn()
}

// isSignedIn notes that the required sign-in is done.
func (a *agent) isSignedIn() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.wanted = nil
	return nil
}

// failed returns the error of a failed turn.
func (a *agent) failed(o outcome) error {
	why := o.err
	if why == "" {
		why = "the turn has failed"
	}
	data := map[string]any{"errorCode": o.code}
	if o.code != authRequired {
		return server.NewError(jsonrpc2.CodeInternalError, why, data)
	}
	methods := append(a.client.signInMethods(), authMethods(o.authMethods)...)
	data["authMethods"] = a.client.is().AuthMethods(methods)
	return server.NewError(acp.CodeAuthRequired, "Authentication required: "+why, data)
}

// authRequired is the error code of a session whose agent requires a sign-in.
const authRequired = "AGENT_AUTH_REQUIRED"

// authMethods converts an agent's sign-in methods for the client. Duet itself runs those in a
// terminal, in a terminal that the client opens.
func authMethods(methods []domain.AuthMethod) (list []acp.AuthMethod) {
	for _, m := range methods {
		if m.Type != "terminal" {
			list = append(list, acp.AuthMethod{ID: m.ID, Name: m.Name, Description: m.Description})
		}
	}
	return list
}
