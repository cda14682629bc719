package signin

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"github.com/duet-rpc/duet-rpc/internal/acp"
	"github.com/duet-rpc/duet-rpc/internal/agentlink"
	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/executor/process"
	"github.com/duet-rpc/duet-rpc/internal/toolinput"
)

// A link is an agent that was started to be asked who it works for.
type link struct {
	*agentlink.Link
	launch agentlink.Launch
	status atomic.Pointer[authStatus]
	told   chan struct{} // has one in it when there is a status
}

// open starts the agent. When ctx ends it is killed.
func open(ctx context.Context, l agentlink.Launch, log *slog.Logger) (*link, error) {
	k := &link{launch: l, told: make(chan struct{}, 1)}
	var err error
	if k.Link, err = agentlink.Open(ctx, l, agentlink.Options{Notice: k.notice, Logger: log}); err != nil {
		return nil, err
	}
	return k, nil
}

// notice takes what the agent says of who is signed in.
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
		case k.told <- struct{}{}:
		default:
		}
	}
}

// Check starts the agent and finds out its version, the ways to sign in, and
// whether somebody is. For that a session is opened, and deleted where the agent
// can do that; it gets no prompt.
func Check(ctx context.Context, l agentlink.Launch, log *slog.Logger) (Report, error) {
	k, err := open(ctx, l, log)
	if err != nil {
		return Report{}, err
	}
	defer k.Close()
	r := k.report()
	r.SignedIn, r.Account, err = k.signedIn(ctx)
	return r, err
}

// report is what is known without a session.
func (k *link) report() Report {
	i := cmp.Or(k.Info.Info, &catalog.AgentInfo{})
	return Report{
		Agent: agentlink.Text(cmp.Or(i.Title, i.Name)), Version: agentlink.Text(i.Version), Methods: methods(k.Info.AuthMethods, k.launch, k.Env),
		Logout: acp.Has(k.Info.Auth.Logout),
	}
}

// signedIn finds out whether somebody is signed in, and what the agent says of that.
func (k *link) signedIn(ctx context.Context) (state, account string, err error) {
	session, err := agentlink.Ask[sessionResult](ctx, k.Link, agentlink.StartTime, acp.MethodSessionNew, map[string]any{"cwd": k.Dir, "mcpServers": []any{}})
	var refused *agentlink.Refusal
	switch {
	case errors.As(err, &refused) && refused.Wire.Code == acp.CodeAuthRequired:
		return SignedOut, refused.Text, nil
	case err != nil:
		return "", "", err
	}
	if acp.Has(toolinput.At(k.Info.CapabilityMeta, "authStatus")) && k.status.Load() == nil {
		patience := time.NewTimer(statusTime)
		defer patience.Stop()
		select {
		case <-k.told:
		case <-patience.C:
		case <-ctx.Done():
			return "", "", ctx.Err()
		}
	}
	if acp.Has(k.Info.Session.Delete) {
		_, _ = agentlink.Ask[struct{}](ctx, k.Link, agentlink.StartTime, "session/delete", map[string]any{"sessionId": session.SessionID}) // it is empty: nothing is lost if it stays
	}
	switch status := k.status.Load(); {
	case status != nil && status.Kind == "none":
		return SignedOut, agentlink.Text(status.Label), nil
	case status != nil:
		return SignedIn, agentlink.Text(strings.TrimSpace(status.Label + " " + status.Detail)), nil
	case len(k.Info.AuthMethods) == 0:
		return NotNeeded, "", nil
	}
	return OpensSessions, "", nil
}

// A TerminalError says that a way to sign in needs a terminal.
type TerminalError struct{ Agent, Method string }

func (e *TerminalError) Error() string {
	return fmt.Sprintf("this way to sign in to %s needs a terminal: run `duet-rpc agents login %s --method %s` in one", e.Agent, e.Agent, e.Method)
}

// A MissingError says that a way to sign in needs variables that the agent
// does not have.
type MissingError struct {
	Agent     string
	Variables []string
}

func (e *MissingError) Error() string {
	name := e.Variables[0]
	service := strings.ToLower(strings.TrimSuffix(strings.TrimSuffix(name, "_KEY"), "_API"))
	return fmt.Sprintf("%s has no %s: say in your config.toml where the key is, [keys.%s], and that it gets it, keys = { %s = %q } in [agents.%s]",
		e.Agent, strings.Join(e.Variables, ", "), service, name, service, e.Agent)
}

// Authenticate signs in with a method of the agent that needs no terminal; an
// empty id means the only one. It takes as long as the person at the browser
// does, but no longer than [LoginTime]. Errors are a [*TerminalError] or a
// [*MissingError], or what the agent says.
func Authenticate(ctx context.Context, l agentlink.Launch, id string, log *slog.Logger) error {
	k, err := open(ctx, l, log)
	if err != nil {
		return err
	}
	defer k.Close()
	m, err := k.report().Find(id)
	switch {
	case err != nil:
		return err
	case m.Type == TypeTerminal:
		return &TerminalError{l.Name, m.ID}
	case len(m.Missing) > 0:
		return &MissingError{l.Name, m.Missing}
	}
	_, err = agentlink.Ask[struct{}](ctx, k.Link, LoginTime, k.Info.Login(), map[string]any{"methodId": m.ID})
	return err
}

// Logout signs out.
func Logout(ctx context.Context, l agentlink.Launch, log *slog.Logger) error {
	k, err := open(ctx, l, log)
	if err != nil {
		return err
	}
	defer k.Close()
	if !k.report().Logout {
		return fmt.Errorf("%s cannot be told to sign out: use its own command line", l.Name)
	}
	_, err = agentlink.Ask[struct{}](ctx, k.Link, agentlink.StartTime, k.Info.Logout(), map[string]any{})
	return err
}

// Terminal is the program of a method of type terminal, with its arguments and
// its environment, to be run in a terminal. Its status tells whether that worked.
func Terminal(l agentlink.Launch, m Method) (path string, argv, env []string, err error) {
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
