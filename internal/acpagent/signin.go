package acpagent

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/sourcegraph/jsonrpc2"

	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/server"
)

// A signIn is what the agent behind wanted last: that somebody signs in.
type signIn struct{ agent string }

// mustSignIn notes which agent wants somebody to sign in.
func (a *agent) mustSignIn(agent string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.wanted = &signIn{agent}
}

// signsInTo is the agent that the client signs in to and out of: the one whose turn failed
// last for want of that, or else the one of new sessions. "" is the default agent.
func (a *agent) signsInTo() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.wanted != nil {
		return cmp.Or(a.wanted.agent, a.opts.Agent)
	}
	return a.opts.Agent
}

// authenticate signs in to the agent behind: to the one that has wanted it last, or else
// to the one of new sessions. Where nobody has to sign in that is no error, since some
// clients ask for it each time they are started.
func (a *agent) authenticate(ctx context.Context, p authenticateRequest) (present, error) {
	a.mu.Lock()
	wanted := a.wanted
	a.mu.Unlock()
	params := map[string]string{}
	if name := a.signsInTo(); name != "" {
		params["agent"] = name
	}
	if p.MethodID != signInByAgent && p.MethodID != signInInTerminal {
		params["method"] = p.MethodID // one of the agent's own
		return present{}, a.signIn(ctx, params)
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
		return present{}, refused(err)
	}
	switch is := checked.Report.SignedIn; {
	case is == "yes", is == "not_needed", is == "opens_sessions" && (wanted == nil || p.MethodID == signInInTerminal):
		return present{}, a.isSignedIn()
	case p.MethodID == signInInTerminal:
		return present{}, server.NewError(codeAuthRequired, fmt.Sprintf("Authentication required: %s says that nobody is signed in: %s", checked.Agent, checked.Report.Account), nil)
	}
	i := slices.IndexFunc(checked.Report.Methods, func(m domain.AuthMethod) bool { return m.Type == "agent" || m.Type == "" })
	if i < 0 {
		return present{}, server.NewError(jsonrpc2.CodeInternalError, fmt.Sprintf("%s cannot sign you in by itself: run `duet-rpc agents login %s` in a terminal", checked.Agent, checked.Agent), nil)
	}
	params["method"] = checked.Report.Methods[i].ID
	return present{}, a.signIn(ctx, params)
}

// logout signs out of the agent behind. It fails if the agent offers no sign-out.
func (a *agent) logout(ctx context.Context, _ struct{}) (present, error) {
	params := map[string]string{}
	if name := a.signsInTo(); name != "" {
		params["agent"] = name
	}
	return present{}, refused(a.hub.Call(ctx, "agent.logout", params, nil, untilDone))
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

// failed is how a turn that failed ends.
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
	data["authMethods"] = methods
	if a.client.isVersion2() {
		data["authMethods"] = authMethods2(methods)
	}
	return server.NewError(codeAuthRequired, "Authentication required: "+why, data)
}

// authRequired is the error code of a session whose agent wants somebody to sign in.
const authRequired = "AGENT_AUTH_REQUIRED"

// authMethods are the ways of an agent to sign in by a request. What it does in a terminal
// is run by Duet, in one that the client opens.
func authMethods(methods []domain.AuthMethod) (list []schemaAuthMethod) {
	for _, m := range methods {
		if m.Type != "terminal" {
			list = append(list, schemaAuthMethod{ID: m.ID, Name: m.Name, Description: m.Description})
		}
	}
	return list
}
