package handlers

import (
	"context"
	"errors"
	"os"
	"strings"

	"github.com/duet-rpc/duet-rpc/internal/agentlink"
	"github.com/duet-rpc/duet-rpc/internal/agentstatus"
	"github.com/duet-rpc/duet-rpc/internal/clientenv"
	"github.com/duet-rpc/duet-rpc/internal/config"
	"github.com/duet-rpc/duet-rpc/internal/dialect"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/server"
)

// registerSignIn registers what asks agents about themselves, outside of any
// session.
func registerSignIn(reg *server.Registry, d Domain) {
	m := signIn{d}
	server.Handle(reg, "agent.list", m.list, server.Doc("Lists the agents that are configured or known, how to get those that are not installed, their versions, and who was signed in when they told that last. Nothing is started."))
	server.Handle(reg, "agent.check", m.check, server.LongRunning(),
		server.Doc("Starts an agent in an empty directory, and tells its version, the ways to sign in that it offers, and whether somebody is signed in, as far as it says. It gets no prompt, and is ended within about a minute."))
	server.Handle(reg, "agent.authenticate", m.authenticate, server.LongRunning(),
		server.Doc("Signs in to an agent: it does that itself, mostly in the user's browser, within ten minutes. A way of type terminal is refused (`needs_terminal`): run its command in a terminal, or `duet-rpc agents login`. So is one of type env_var whose variables are missing (`no_api_key`)."))
	server.Handle(reg, "agent.logout", m.logout, server.LongRunning(), server.Doc("Signs out of an agent, if agent.check says that it can be told to."))
}

type signIn struct{ Domain }

type agentList struct {
	Agents []agentstatus.Agent `json:"agents" doc:"The default one first, then those that are available."`
}

type agentName struct {
	Agent string `json:"agent,omitempty" doc:"The agent's name in the configuration; absent: the default one."`
}

type authenticateParams struct {
	Agent  string `json:"agent,omitempty" doc:"The agent's name in the configuration; absent: the default one."`
	Method string `json:"method,omitempty" doc:"The id of a way to sign in, as agent.check lists them; absent: the only one."`
}

type checkResult struct {
	Agent   string           `json:"agent" doc:"Its name in the configuration."`
	Report  agentlink.Report `json:"report"`
	Missing []string         `json:"missing_keys,omitempty" doc:"Keys that are configured for it and could not be had, in words; it was started without them."`
}

// configuration is that of who asks, who may not trust the workspace.
func (m signIn) configuration(ctx context.Context) (*config.Config, error) {
	c, err := m.Configuration(m.Workspaces.isRestricted(server.ConnFrom(ctx)))
	if err != nil {
		return nil, &domain.Error{Kind: domain.KindExecutor, Message: "the configuration cannot be read: " + config.Explain(err).Error(), Err: err}
	}
	return c, nil
}

func (m signIn) list(ctx context.Context, _ none) (agentList, error) {
	c, err := m.configuration(ctx)
	if err != nil {
		return agentList{}, dialect.Session.Error(err)
	}
	return agentList{agentstatus.Describe(ctx, c, agentstatus.Options{Notes: m.AgentNotes, Version: m.Version, Getenv: os.Getenv})}, nil
}

// launch is how an agent is started for who asks.
func (m signIn) launch(ctx context.Context, name string) (agentlink.Launch, []string, error) {
	c, err := m.configuration(ctx)
	if err != nil {
		return agentlink.Launch{}, nil, err
	}
	agent, err := config.AgentIn(c, name)
	if err != nil {
		return agentlink.Launch{}, nil, err
	}
	ctx = m.Workspaces.context(ctx)
	if program := agent.ProgramOn(clientenv.From(ctx)["PATH"]); program != "" { // the hub's process may have another PATH
		agent.Path, agent.CLI, agent.Available = program, "", true
	}
	if err := agentlink.Askable(agent); err != nil {
		return agentlink.Launch{}, nil, &domain.Error{Kind: domain.KindExecutor, Message: err.Error(), Err: err}
	}
	l, missing := agentlink.LaunchOf(ctx, c, agent, os.Getenv)
	return l, missing, nil
}

func (m signIn) check(ctx context.Context, p agentName) (checkResult, error) {
	l, missing, err := m.launch(ctx, p.Agent)
	if err != nil {
		return checkResult{}, dialect.Session.Error(err)
	}
	report, err := agentlink.CheckSignIn(ctx, l, m.Logger)
	if err != nil {
		return checkResult{}, signInError(ctx, err)
	}
	m.AgentNotes.Checked(l.Name, l.Command, report)
	return checkResult{l.Name, report, missing}, nil
}

func (m signIn) authenticate(ctx context.Context, p authenticateParams) (success, error) {
	l, _, err := m.launch(ctx, p.Agent)
	if err != nil {
		return success{}, dialect.Session.Error(err)
	}
	if err := agentlink.Authenticate(ctx, l, p.Method, m.Logger); err != nil {
		return success{}, signInError(ctx, err)
	}
	m.AgentNotes.Authenticated(l.Name, l.Command)
	return success{true}, nil
}

func (m signIn) logout(ctx context.Context, p agentName) (success, error) {
	l, _, err := m.launch(ctx, p.Agent)
	if err != nil {
		return success{}, dialect.Session.Error(err)
	}
	if err := agentlink.Logout(ctx, l, m.Logger); err != nil {
		return success{}, signInError(ctx, err)
	}
	m.AgentNotes.SignedOut(l.Name, l.Command)
	return success{true}, nil
}

// signInError is what an agent said, or why it could not be asked, as clients
// are told it.
func signInError(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	kind := domain.KindExecutor
	var unknown *agentlink.UnknownMethodError
	switch {
	case errors.As(err, &unknown):
		return dialect.Session.Error(&domain.Error{
			Kind: domain.KindInvalid, Param: "method", Expected: "the id of a way to sign in: " + strings.Join(unknown.Known, ", "), Received: unknown.Received(),
			Accepted: unknown.Known, Message: err.Error(),
		})
	case errors.As(err, new(*agentlink.TerminalError)):
		kind = domain.KindNeedsTerminal
	case errors.As(err, new(*agentlink.MissingError)):
		kind = domain.KindNoAPIKey
	}
	return dialect.Session.Error(&domain.Error{Kind: kind, Message: err.Error(), Err: err})
}
