package signin

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/coder/acp-go-sdk"

	"github.com/duet-rpc/duet-rpc/internal/executor/authmethod"
	"github.com/duet-rpc/duet-rpc/internal/executor/process"
)

// Check starts the agent and finds out its version, the ways to sign in, and
// whether somebody is. For that a session is opened, and deleted where the agent
// can do that; it gets no prompt.
func Check(ctx context.Context, l Launch, log *slog.Logger) (Report, error) {
	k, err := open(ctx, l, log)
	if err != nil {
		return Report{}, err
	}
	defer k.close()
	r := k.report()
	r.SignedIn, r.Account, err = k.signedIn(ctx)
	return r, err
}

// report is what is known without a session.
func (k *link) report() Report {
	i := k.info.AgentInfo
	return Report{
		Agent: text(cmp.Or(i.Title, i.Name)), Version: text(i.Version), Methods: methods(k.info.AuthMethods, k.launch, k.env),
		Logout: present(k.info.AgentCapabilities.Auth.Logout),
	}
}

// signedIn finds out whether somebody is signed in, and what the agent says of that.
func (k *link) signedIn(ctx context.Context) (state, account string, err error) {
	session, err := ask[sessionResult](ctx, k, startTime, acp.AgentMethodSessionNew, map[string]any{"cwd": k.dir, "mcpServers": []any{}})
	var refused *refusal
	switch {
	case errors.As(err, &refused) && authmethod.IsRequired(refused.wire):
		return SignedOut, refused.text, nil
	case err != nil:
		return "", "", err
	}
	if present(k.info.AgentCapabilities.Meta.AuthStatus) && k.status.Load() == nil {
		patience := time.NewTimer(statusTime)
		defer patience.Stop()
		select {
		case <-k.told:
		case <-patience.C:
		case <-ctx.Done():
			return "", "", ctx.Err()
		}
	}
	if present(k.info.AgentCapabilities.SessionCapabilities.Delete) {
		_, _ = ask[struct{}](ctx, k, startTime, "session/delete", map[string]any{"sessionId": session.SessionID}) // it is empty: nothing is lost if it stays
	}
	switch status := k.status.Load(); {
	case status != nil && status.Kind == "none":
		return SignedOut, text(status.Label), nil
	case status != nil:
		return SignedIn, text(strings.TrimSpace(status.Label + " " + status.Detail)), nil
	case len(k.info.AuthMethods) == 0:
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
func Authenticate(ctx context.Context, l Launch, id string, log *slog.Logger) error {
	k, err := open(ctx, l, log)
	if err != nil {
		return err
	}
	defer k.close()
	m, err := k.report().Find(id)
	switch {
	case err != nil:
		return err
	case m.Type == TypeTerminal:
		return &TerminalError{l.Name, m.ID}
	case len(m.Missing) > 0:
		return &MissingError{l.Name, m.Missing}
	}
	_, err = ask[struct{}](ctx, k, LoginTime, acp.AgentMethodAuthenticate, map[string]any{"methodId": m.ID})
	return err
}

// Logout signs out.
func Logout(ctx context.Context, l Launch, log *slog.Logger) error {
	k, err := open(ctx, l, log)
	if err != nil {
		return err
	}
	defer k.close()
	if !k.report().Logout {
		return fmt.Errorf("%s cannot be told to sign out: use its own command line", l.Name)
	}
	_, err = ask[struct{}](ctx, k, startTime, "logout", map[string]any{})
	return err
}

// Terminal is the program of a method of type terminal, with its arguments and
// its environment, to be run in a terminal. Its status tells whether that worked.
func Terminal(l Launch, m Method) (path string, argv, env []string, err error) {
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
