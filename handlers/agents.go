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

type agentList struct {
	Agents []agentlink.Agent `json:"agents" doc:"The default one first, then those that are available."`
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
		return agentList{}, sessionFamily.Error(err)
	}
	return agentList{agentlink.Describe(ctx, c, agentlink.DescribeOptions{Notes: m.AgentNotes, Version: m.Version, Getenv: os.Getenv})}, nil
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
		return checkResult{}, sessionFamily.Error(err)
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
		return success{}, sessionFamily.Error(err)
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
		return success{}, sessionFamily.Error(err)
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

type setParams struct {
	SessionID string            `json:"session_id" doc:"The session; every id of the run will do."`
	Agent     *string           `json:"agent,omitempty" doc:"Another agent of the configuration, which goes on with the conversation from the next prompt on."`
	Mode      *string           `json:"mode,omitempty" doc:"A mode of the agent's, or default, acceptEdits, bypassPermissions or plan (\"Modes\")."`
	Model     *string           `json:"model,omitempty" doc:"A model of the agent's; empty: none is asked for any more."`
	Options   map[string]string `json:"options,omitempty" doc:"Values of the agent's options, by their ids; an empty one is not asked for any more."`
}

func (p setParams) check() error {
	return first(need("session_id", p.SessionID), needIfGiven("agent", p.Agent))
}

type setResult struct {
	Live    bool    `json:"live" doc:"The agent works, and has taken it; else it gets it with the next prompt."`
	Session session `json:"session" doc:"As of getSessionState."`
}

func setAgent(ctx context.Context, h *hub.Hub, p setParams) (setResult, error) {
	s, live, err := h.Settings().SetAgent(ctx, p.SessionID, threadsettings.Change{Agent: p.Agent, Mode: p.Mode, Model: p.Model, Options: p.Options})
	if err != nil {
		var e *domain.Error
		if errors.As(err, &e) && e.Kind == domain.KindInvalid && e.Param == "permission_mode" {
			e.Param = "mode"
		}
		return setResult{}, err
	}
	known, err := h.Settings().OfSession(ctx, s)
	if err != nil {
		return setResult{}, err
	}
	one := []*session{sessionOf(s, time.Now())}
	one[0].describe(known)
	fit(one, room(ctx))
	return setResult{live, *one[0]}, nil
}

type describeParams struct {
	Agent string `json:"agent,omitempty" doc:"The agent's name in the configuration; absent: the default one."`
}

type describeResult struct {
	Agent        string                 `json:"agent"`
	Modes        []mode                 `json:"modes" doc:"All that can be asked for."`
	AgentSession *protocol.AgentSession `json:"agent_session,omitempty" doc:"Absent: it has told nothing yet."`
}

func describeAgent(ctx context.Context, h *hub.Hub, p describeParams) (describeResult, error) {
	known, err := h.Settings().OfAgent(ctx, p.Agent)
	if err != nil {
		return describeResult{}, err
	}
	return describeResult{known.Agent, modes(known), agentSession(known.Reported)}, nil
}

// A mode is one that can be asked for.
type mode struct {
	ID          string `json:"id"`
	Name        string `json:"name,omitempty"`
	Description string `json:"description,omitempty"`
	By          string `json:"by" doc:"agent, or duet: whatever the agent is in, Duet answers its questions like that."`
}

var duetsModes = map[string]mode{
	catalog.ModeDefault:     {catalog.ModeDefault, "Default", "The agent is left in its own mode; what it asks is asked", "duet"},
	catalog.ModeAcceptEdits: {catalog.ModeAcceptEdits, "Accept edits", "Edits of files need no approval", "duet"},
	catalog.ModeBypass:      {catalog.ModeBypass, "Bypass permissions", "Nothing needs approval", "duet"},
	catalog.ModePlan:        {catalog.ModePlan, "Plan", "What would change something is refused", "duet"},
}

// modes describes the modes that can be asked of an agent.
func modes(known threadsettings.Known) []mode {
	list, reported := []mode{}, known.Reported
	for _, id := range known.Modes {
		m, ours := duetsModes[id]
		if !ours {
			m = mode{ID: id}
		}
		if reported.Modes != nil {
			for _, c := range reported.Modes.Choices {
				if c.ID == id {
					m = mode{id, c.Name, c.Description, "agent"}
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

// describe adds to a session what its agent has told, which no list has.
func (s *session) describe(known threadsettings.Known) {
	s.Modes, s.AgentSession, s.described = modes(known), agentSession(known.Reported), known.Reported.Size()
}
