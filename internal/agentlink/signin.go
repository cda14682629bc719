package agentlink

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/duet-rpc/duet-rpc/internal/acp"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/executor/process"
	"github.com/duet-rpc/duet-rpc/internal/toolinput"
)

// This file handles the agent's account: whether the user is signed in, signing in, signing out.
// It starts the agent for that, in an empty directory, and ends it.
//
// The protocol is described on https://agentclientprotocol.com/protocol/v1/authentication.

// FindMethod returns the sign-in method of an id. An empty id means the only one.
func FindMethod(r domain.AgentReport, id string) (domain.SignInMethod, error) {
	if len(r.Methods) == 0 {
		return domain.SignInMethod{}, fmt.Errorf("%s offers no way to sign in", cmp.Or(r.Agent, "the agent"))
	}
	if id == "" && len(r.Methods) == 1 {
		return r.Methods[0], nil
	}
	for _, m := range r.Methods {
		if m.ID == id && id != "" {
			return m, nil
		}
	}
	unknown := &UnknownMethodError{ID: id}
	for _, m := range r.Methods {
		unknown.Known = append(unknown.Known, m.ID)
	}
	return domain.SignInMethod{}, unknown
}

// An UnknownMethodError reports that the method does not exist, or that there are several and
// none was named.
type UnknownMethodError struct {
	ID    string
	Known []string
}

func (e *UnknownMethodError) Error() string {
	if e.ID == "" {
		return "say which way: " + strings.Join(e.Known, ", ")
	}
	return fmt.Sprintf("there is no way %s to sign in; there are %s", e.Received(), strings.Join(e.Known, ", "))
}

// Received describes the given method.
func (e *UnknownMethodError) Received() string {
	if e.ID == "" {
		return "none"
	}
	return strconv.Quote(Text(e.ID))
}

// Timeouts for an agent.
const (
	statusTime = 5 * time.Second // to report the account, if it has announced to do so
	// loginTime is how long the user may take to sign in, usually in a browser.
	loginTime = 10 * time.Minute
)

// maxMethods is how many sign-in methods of an agent are used.
const maxMethods = 20

// methods converts the methods of an agent that was started by l.
func methods(offered []acp.AuthMethod, l Launch, env process.Environment) []domain.SignInMethod {
	list := []domain.SignInMethod{}
	for _, o := range offered[:min(len(offered), maxMethods)] {
		if o.ID == "" || Text(o.ID) != o.ID {
			continue
		}
		m := domain.SignInMethod{ID: o.ID, Name: Text(cmp.Or(o.Name, o.ID)), Description: Text(o.Description), Type: o.Kind()}
		switch {
		case o.Type == domain.SignInInTerminal:
			m.Command, m.Environment = append(slices.Clone(l.Command), o.Args...), o.Env
		case m.Type == domain.SignInInTerminal: // with its own command
			terminal := o.Meta.Terminal
			m.Command, m.Environment = append([]string{terminal.Command}, terminal.Args...), terminal.Env
		case o.Type == domain.SignInByVariable:
			for _, v := range o.Needs() {
				m.Variables = append(m.Variables, v)
				if env[v] == "" {
					m.Missing = append(m.Missing, v)
				}
			}
		}
		list = append(list, m)
	}
	return list
}

// A link is an agent that was started for its account.
type link struct {
	*Link
	launch      Launch
	status      atomic.Pointer[authStatus]
	statusKnown chan struct{} // holds one when there is a status
}

// open starts the agent. When ctx ends it is killed.
func open(ctx context.Context, l Launch, log *slog.Logger) (*link, error) {
	k := &link{launch: l, statusKnown: make(chan struct{}, 1)}
	var err error
	if k.Link, err = Open(ctx, l, Options{Notice: k.notice, Logger: log}); err != nil {
		return nil, err
	}
	return k, nil
}

// notice handles the agent's status notifications.
func (k *link) notice(method string, params []byte) {
	if method != "_auth/status_update" {
		return
	}
	var update struct {
		AuthStatus *authStatus `json:"authStatus"`
	}
	if json.Unmarshal(params, &update) == nil && update.AuthStatus != nil {
		k.status.Store(update.AuthStatus)
		select {
		case k.statusKnown <- struct{}{}:
		default:
		}
	}
}

// CheckSignIn starts the agent and returns its version, its sign-in methods, and whether the
// user is signed in. For that it opens a session, and deletes it if the agent can; it sends no
// prompt.
func CheckSignIn(ctx context.Context, l Launch, log *slog.Logger) (domain.AgentReport, error) {
	k, err := open(ctx, l, log)
	if err != nil {
		return domain.AgentReport{}, err
	}
	defer k.Close()
	r := k.report()
	r.SignedIn, r.Account, err = k.signedIn(ctx)
	return r, err
}

// report returns the information that needs no session.
func (k *link) report() domain.AgentReport {
	i := cmp.Or(k.Info.Info, &domain.AgentInfo{})
	return domain.AgentReport{
		Agent: Text(cmp.Or(i.Title, i.Name)), Version: Text(i.Version), Methods: methods(k.Info.AuthMethods, k.launch, k.Env),
		Logout: acp.Has(k.Info.Auth.Logout),
	}
}

// signedIn determines whether the user is signed in, and the account that the agent reports.
func (k *link) signedIn(ctx context.Context) (state, account string, err error) {
	session, err := Ask[sessionResult](ctx, k.Link, k.startTime, acp.MethodSessionNew, map[string]any{"cwd": k.Dir, "mcpServers": []any{}})
	var refused *Refusal
	switch {
	case errors.As(err, &refused) && refused.Wire.Code == acp.CodeAuthRequired:
		return domain.SignedOut, refused.Text, nil
	case err != nil:
		return "", "", err
	}
	if acp.Has(toolinput.At(k.Info.CapabilityMeta, "authStatus")) && k.status.Load() == nil {
		patience := time.NewTimer(statusTime)
		defer patience.Stop()
		select {
		case <-k.statusKnown:
		case <-patience.C:
		case <-ctx.Done():
			return "", "", ctx.Err()
		}
	}
	if acp.Has(k.Info.Session.Delete) {
		_, _ = Ask[struct{}](ctx, k.Link, k.startTime, "session/delete", map[string]any{"sessionId": session.SessionID}) // the session is empty: nothing is lost if it stays
	}
	switch status := k.status.Load(); {
	case status != nil && status.Kind == "none":
		return domain.SignedOut, Text(status.Label), nil
	case status != nil:
		return domain.SignedIn, Text(strings.TrimSpace(status.Label + " " + status.Detail)), nil
	case len(k.Info.AuthMethods) == 0:
		return domain.SignInNotNeeded, "", nil
	}
	return domain.OpensSessions, "", nil
}

// A TerminalError reports that a sign-in method needs a terminal.
type TerminalError struct{ Agent, Method string }

func (e *TerminalError) Error() string {
	return fmt.Sprintf("this way to sign in to %s needs a terminal: run `duet-rpc agents login %s --method %s` in one", e.Agent, e.Agent,
		e.Method)
}

// A MissingError reports that a sign-in method needs variables that the agent does not have.
type MissingError struct {
	Agent     string
	Variables []string
}

func (e *MissingError) Error() string {
	name := e.Variables[0]
	service := strings.ToLower(strings.TrimSuffix(strings.TrimSuffix(name, "_KEY"), "_API"))
	return fmt.Sprintf("%s has no %s: say in your config.toml where the key is, [keys.%s], and that it gets it, keys = { %s = %q } in "+
		"[agents.%s]",
		e.Agent, strings.Join(e.Variables, ", "), service, name, service, e.Agent)
}

// Authenticate signs in with a method that needs no terminal; an empty id means the only one. It
// waits for the user at the browser, but no longer than [loginTime]. Errors are a
// [*TerminalError] or a [*MissingError], or the agent's own.
func Authenticate(ctx context.Context, l Launch, id string, log *slog.Logger) error {
	k, err := open(ctx, l, log)
	if err != nil {
		return err
	}
	defer k.Close()
	m, err := FindMethod(k.report(), id)
	switch {
	case err != nil:
		return err
	case m.Type == domain.SignInInTerminal:
		return &TerminalError{l.Name, m.ID}
	case len(m.Missing) > 0:
		return &MissingError{l.Name, m.Missing}
	}
	_, err = Ask[struct{}](ctx, k.Link, loginTime, k.Info.Login(), map[string]any{"methodId": m.ID})
	return err
}

// Logout signs out.
func Logout(ctx context.Context, l Launch, log *slog.Logger) error {
	k, err := open(ctx, l, log)
	if err != nil {
		return err
	}
	defer k.Close()
	if !k.report().Logout {
		return fmt.Errorf("%s does not offer to sign out: use its own command line", l.Name)
	}
	_, err = Ask[struct{}](ctx, k.Link, k.startTime, k.Info.Logout(), map[string]any{})
	return err
}

// Terminal returns the program of a method of type terminal, with its arguments and its
// environment, to run in a terminal. Exit status 0 means success.
func Terminal(l Launch, m domain.SignInMethod) (path string, argv, env []string, err error) {
	e := process.NewEnvironment(l.Environment, m.Environment)
	dir, err := os.Getwd()
	if err != nil {
		return "", nil, nil, err
	}
	if path, err = e.Find(m.Command[0], dir); err != nil {
		return "", nil, nil, fmt.Errorf("%s: the program %q was not found", l.Name, m.Command[0])
	}
	return path, m.Command, e.List(), nil
}

// The decoded parts of an agent's messages. Unknown members are ignored, so that newer agents
// work.
type (
	// authStatus is sent by claude, in the notification _auth/status_update.
	authStatus struct {
		Kind   string `json:"kind"`
		Label  string `json:"label"`
		Detail string `json:"detail"`
	}
	sessionResult struct {
		SessionID string `json:"sessionId"`
	}
)
