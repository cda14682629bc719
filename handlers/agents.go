package handlers

import (
	"context"
	"errors"
	"os"
	"strings"
	"time"

	"github.com/duet-rpc/duet-rpc/internal/agentlink"
	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/clientenv"
	"github.com/duet-rpc/duet-rpc/internal/config"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/hub"
	"github.com/duet-rpc/duet-rpc/internal/protocol"
	"github.com/duet-rpc/duet-rpc/internal/threadsettings"
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

// configuration is that of who asks, who may not trust the workspace.
func (m signIn) configuration(ctx context.Context) (*config.Config, error) {
	c, err := m.Configuration(m.Workspaces.isRestricted(server.ConnFrom(ctx)))
	if err != nil {
		return nil, &domain.Error{Kind: domain.KindExecutor, Message: "the configuration cannot be read: " + config.Explain(err).Error(), Err: err}
	}
	return c, nil
}

func (m signIn) list(ctx context.Context, _ none) (protocol.AgentList, error) {
	c, err := m.configuration(ctx)
	if err != nil {
		return protocol.AgentList{}, sessionFamily.Error(err)
	}
	return protocol.AgentList{Agents: agentlink.Describe(ctx, c, agentlink.DescribeOptions{Notes: m.AgentNotes, Version: m.Version, Getenv: os.Getenv})}, nil
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

func (m signIn) check(ctx context.Context, p protocol.AgentParams) (protocol.SignInStatus, error) {
	l, missing, err := m.launch(ctx, p.Agent)
	if err != nil {
		return protocol.SignInStatus{}, sessionFamily.Error(err)
	}
	report, err := agentlink.CheckSignIn(ctx, l, m.Logger)
	if err != nil {
		return protocol.SignInStatus{}, signInError(ctx, err)
	}
	m.AgentNotes.Checked(l.Name, l.Command, report)
	return protocol.SignInStatus{Agent: l.Name, Report: report, Missing: missing}, nil
}

func (m signIn) authenticate(ctx context.Context, p protocol.AuthenticateParams) (protocol.Success, error) {
	l, _, err := m.launch(ctx, p.Agent)
	if err != nil {
		return protocol.Success{}, sessionFamily.Error(err)
	}
	if err := agentlink.Authenticate(ctx, l, p.Method, m.Logger); err != nil {
		return protocol.Success{}, signInError(ctx, err)
	}
	m.AgentNotes.Authenticated(l.Name, l.Command)
	return protocol.Success{Success: true}, nil
}

func (m signIn) logout(ctx context.Context, p protocol.AgentParams) (protocol.Success, error) {
	l, _, err := m.launch(ctx, p.Agent)
	if err != nil {
		return protocol.Success{}, sessionFamily.Error(err)
	}
	if err := agentlink.Logout(ctx, l, m.Logger); err != nil {
		return protocol.Success{}, signInError(ctx, err)
	}
	m.AgentNotes.SignedOut(l.Name, l.Command)
	return protocol.Success{Success: true}, nil
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
		return sessionFamily.Error(&domain.Error{
			Kind: domain.KindInvalid, Param: "method", Expected: "the id of a way to sign in: " + strings.Join(unknown.Known, ", "), Received: unknown.Received(),
			Accepted: unknown.Known, Message: err.Error(),
		})
	case errors.As(err, new(*agentlink.TerminalError)):
		kind = domain.KindNeedsTerminal
	case errors.As(err, new(*agentlink.MissingError)):
		kind = domain.KindNoAPIKey
	}
	return sessionFamily.Error(&domain.Error{Kind: kind, Message: err.Error(), Err: err})
}

// registerAgents registers what tells of agents, and sets them.
func registerAgents(reg *server.Registry, d Domain) {
	handle(reg, d, sessionFamily, "session.set", setAgent, server.LongRunning(),
		server.Doc("Sets the agent of a session's conversation to a mode, a model, or values of its options. If it works just now it takes them at once, or refuses them, and then nothing is changed; else it gets them with the next prompt. With agent, another agent goes on with the conversation: it is told what was said, begins in default or plan, with a model of its own, and nothing that the one before might do unasked; what that one asked and nobody has answered is closed. While a session of the conversation runs, or waits to, that is refused."))
	handle(reg, d, sessionFamily, "agent.describe", describeAgent,
		server.Doc("Tells which modes can be asked of an agent, and what it has told of its session last, in any conversation: its modes, models, options and slash commands."))
}

func setAgent(ctx context.Context, h *hub.Hub, p protocol.SetSessionParams) (protocol.SetSessionResult, error) {
	s, live, err := h.Settings().SetAgent(ctx, p.SessionID, threadsettings.Change{Agent: p.Agent, Mode: p.Mode, Model: p.Model, Options: p.Options})
	if err != nil {
		var e *domain.Error
		if errors.As(err, &e) && e.Kind == domain.KindInvalid && e.Param == "permission_mode" {
			e.Param = "mode"
		}
		return protocol.SetSessionResult{}, err
	}
	known, err := h.Settings().OfSession(ctx, s)
	if err != nil {
		return protocol.SetSessionResult{}, err
	}
	one := []*protocol.Session{sessionOf(s, time.Now())}
	describeSession(one[0], known)
	fit(one, room(ctx))
	return protocol.SetSessionResult{Live: live, Session: *one[0]}, nil
}

func describeAgent(ctx context.Context, h *hub.Hub, p protocol.DescribeAgentParams) (protocol.AgentDescription, error) {
	known, err := h.Settings().OfAgent(ctx, p.Agent)
	if err != nil {
		return protocol.AgentDescription{}, err
	}
	return protocol.AgentDescription{Agent: known.Agent, Modes: modes(known), AgentSession: agentSession(known.Reported)}, nil
}

var duetsModes = map[string]protocol.Mode{
	catalog.ModeDefault:     {ID: catalog.ModeDefault, Name: "Default", Description: "The agent is left in its own mode; what it asks is asked", By: "duet"},
	catalog.ModeAcceptEdits: {ID: catalog.ModeAcceptEdits, Name: "Accept edits", Description: "Edits of files need no approval", By: "duet"},
	catalog.ModeBypass:      {ID: catalog.ModeBypass, Name: "Bypass permissions", Description: "Nothing needs approval", By: "duet"},
	catalog.ModePlan:        {ID: catalog.ModePlan, Name: "Plan", Description: "What would change something is refused", By: "duet"},
}

// modes describes the modes that can be asked of an agent.
func modes(known threadsettings.Known) []protocol.Mode {
	list, reported := []protocol.Mode{}, known.Reported
	for _, id := range known.Modes {
		m, ours := duetsModes[id]
		if !ours {
			m = protocol.Mode{ID: id}
		}
		if reported.Modes != nil {
			for _, c := range reported.Modes.Choices {
				if c.ID == id {
					m = protocol.Mode{ID: id, Name: c.Name, Description: c.Description, By: "agent"}
				}
			}
		}
		list = append(list, m)
	}
	return list
}

// reportedAtMost is how much of what an agent tells goes into a result, in bytes: an
// agent can tell as much as it likes.
const reportedAtMost = 256 << 10

// agentSession is what an agent has told of its session, or nil.
func agentSession(reported domain.AgentSession) *protocol.AgentSession {
	if reported.Size() > reportedAtMost {
		reported.Options, reported.Commands = nil, nil
	}
	if reported.Size() > reportedAtMost {
		reported.Modes, reported.Models = nil, nil
	}
	if reported.Agent == nil && reported.Modes == nil && reported.Models == nil && reported.Options == nil && reported.Commands == nil && reported.Info == nil {
		return nil
	}
	s := protocol.AgentSessionOf(reported)
	return &s
}

// describeSession adds to a session what its agent has told, which no list has.
func describeSession(s *protocol.Session, known threadsettings.Known) {
	s.Modes, s.AgentSession = modes(known), agentSession(known.Reported)
}
