package protocol

import (
	"slices"

	"github.com/duet-rpc/duet-rpc/internal/domain"
)

// An AgentSession is what an agent reports about its session. In an event an absent part has
// not changed.
type AgentSession struct {
	Agent    *domain.AgentInfo     `json:"agent,omitempty" doc:"Which program it is, in its own words."`
	Mode     *domain.Selection     `json:"mode,omitempty" doc:"The mode that it is in, and those that it has; none is available of an agent without modes."`
	Model    *domain.Selection     `json:"model,omitempty" doc:"The model that it works with, and those that it has; none is available of an agent that does not say."`
	Options  []domain.AgentOption  `json:"options,omitzero" doc:"What else it can be set to, in its order; those that choose its mode and its model are among them."`
	Commands []domain.AgentCommand `json:"commands,omitzero" doc:"Its slash commands: a prompt may begin with / and the name of one."`
	Info     *domain.SessionInfo   `json:"info,omitempty" doc:"What it calls the session."`

	Background []domain.BackgroundTask `json:"background,omitzero" doc:"What it does in the background, while no prompt runs."`
}

// AgentSessionOf is an agent's session for clients, to whom its limits for prompts are of no
// use.
func AgentSessionOf(s domain.AgentSession) AgentSession {
	a := AgentSession{s.Agent, listed(s.Modes), listed(s.Models), slices.Clone(s.Options), s.Commands, s.Info, s.Background}
	for i := range a.Options {
		a.Options[i].Choices = List(a.Options[i].Choices)
	}
	return a
}

// listed is a selection with a list of choices, even if it is empty.
func listed(s *domain.Selection) *domain.Selection {
	if s == nil {
		return nil
	}
	return &domain.Selection{Current: s.Current, Choices: List(s.Choices)}
}

type agentSessionData struct {
	ids
	AgentSession
	Truncated bool `json:"truncated,omitempty"`
}
