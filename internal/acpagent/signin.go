package acpagent

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/sourcegraph/jsonrpc2"

	"github.com/duet-rpc/duet-rpc/internal/acpagent/schema"
	"github.com/duet-rpc/duet-rpc/internal/wire"
	"github.com/duet-rpc/duet-rpc/server"
)

// The ways to sign in that every client is offered, whichever agent is behind. Those of
// the agent itself are told when it wants somebody to sign in.
const (
	signInByAgent    = "agent"
	signInInTerminal = "terminal"
)

// LoginFlag is the flag with which the program signs in, in a terminal.
const LoginFlag = "--login"

// signInMethods are the ways to sign in that a client can use. It appends the arguments
// of the one in a terminal to those that it starts Duet with.
func (e *editor) signInMethods() []schema.AuthMethod {
	var list []schema.AuthMethod
	if e.capabilities().SignsInInTerminal() {
		list = append(list, schema.AuthMethod{
			ID: signInInTerminal, Name: "Sign in to the agent in a terminal", Description: "The agent behind Duet says there which ways it has",
			Type: "terminal", Args: []string{LoginFlag},
		})
	}
	return append(list, schema.AuthMethod{
		ID: signInByAgent, Name: "Have the agent sign you in", Description: "The agent behind Duet does that itself, mostly in your browser",
	})
}

// A signIn is what the agent behind wanted last: that somebody signs in.
type signIn struct{ agent string }

// mustSignIn notes which agent wants somebody to sign in.
func (a *agent) mustSignIn(agent string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.wanted = &signIn{agent}
}

// authenticate signs in to the agent behind: to the one that has wanted it last, or else
// to the one of new sessions. Where nobody has to sign in that is no error, since some
// clients ask for it each time they are started.
func (a *agent) authenticate(ctx context.Context, p schema.AuthenticateRequest) (schema.Present, error) {
	a.mu.Lock()
	wanted := a.wanted
	a.mu.Unlock()
	name := a.opts.Agent
	if wanted != nil {
		name = cmp.Or(wanted.agent, name)
	}
	params := map[string]string{}
	if name != "" {
		params["agent"] = name
	}
	if p.MethodID != signInByAgent && p.MethodID != signInInTerminal {
		params["method"] = p.MethodID // one of the agent's own
		return schema.Present{}, a.signIn(ctx, params)
	}
	var checked struct {
		Agent  string
		Report struct {
			SignedIn string `json:"signed_in"`
			Account  string
			Methods  []wire.AuthMethod
		}
	}
	if err := a.hub.Call(ctx, "agent.check", params, &checked, untilDone); err != nil {
		return schema.Present{}, refused(err)
	}
	switch is := checked.Report.SignedIn; {
	case is == "yes", is == "not_needed", is == "opens_sessions" && (wanted == nil || p.MethodID == signInInTerminal):
		return schema.Present{}, a.isSignedIn()
	case p.MethodID == signInInTerminal:
		return schema.Present{}, server.NewError(schema.CodeAuthRequired, fmt.Sprintf("Authentication required: %s says that nobody is signed in: %s", checked.Agent, checked.Report.Account), nil)
	}
	i := slices.IndexFunc(checked.Report.Methods, func(m wire.AuthMethod) bool { return m.Type == "agent" || m.Type == "" })
	if i < 0 {
		return schema.Present{}, server.NewError(jsonrpc2.CodeInternalError, fmt.Sprintf("%s cannot sign you in by itself: run `duet-rpc agents login %s` in a terminal", checked.Agent, checked.Agent), nil)
	}
	params["method"] = checked.Report.Methods[i].ID
	return schema.Present{}, a.signIn(ctx, params)
}

// signIn has an agent sign in.
func (a *agent) signIn(ctx context.Context, params map[string]string) error {
	if err := a.hub.Call(ctx, "agent.authenticate", params, nil, untilDone); err != nil {
		return refused(err)
	}
	return a.isSignedIn()
}

// isSignedIn notes that what was wanted is done.
func (a *agent) isSignedIn() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.wanted = nil
	return nil
}
