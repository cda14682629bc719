package handlers

import (
	"context"
	"errors"
	"time"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/dialect"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/hub"
	"github.com/duet-rpc/duet-rpc/internal/threadsettings"
	"github.com/duet-rpc/duet-rpc/server"
)

// registerAgents registers what tells of agents, and sets them.
func registerAgents(reg *server.Registry, d Domain) {
	handle(reg, d, dialect.Session, "session.set", setAgent, server.LongRunning(),
		server.Doc("Sets the agent of a session's conversation to a mode, a model, or values of its options. If it works just now it takes them at once, or refuses them, and then nothing is changed; else it gets them with the next prompt. With agent, another agent goes on with the conversation: it is told what was said, begins in default or plan, with a model of its own, and nothing that the one before might do unasked; what that one asked and nobody has answered is closed. While a session of the conversation runs, or waits to, that is refused."))
	handle(reg, d, dialect.Session, "agent.describe", describeAgent,
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
	Agent        string                `json:"agent"`
	Modes        []mode                `json:"modes" doc:"All that can be asked for."`
	AgentSession *dialect.AgentSession `json:"agent_session,omitempty" doc:"Absent: it has told nothing yet."`
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
func agentSession(reported domain.AgentSession) *dialect.AgentSession {
	if reported.Size() > reportedAtMost {
		reported.Options, reported.Commands = nil, nil
	}
	if reported.Size() > reportedAtMost {
		reported.Modes, reported.Models = nil, nil
	}
	if reported.Agent == nil && reported.Modes == nil && reported.Models == nil && reported.Options == nil && reported.Commands == nil && reported.Info == nil {
		return nil
	}
	s := dialect.AgentSessionOf(reported)
	return &s
}

// describe adds to a session what its agent has told, which no list has.
func (s *session) describe(known threadsettings.Known) {
	s.Modes, s.AgentSession, s.described = modes(known), agentSession(known.Reported), known.Reported.Size()
}
