package dialect

import (
	"encoding/json"

	"github.com/duet-rpc/duet-rpc/internal/domain"
)

// An AgentSession is what an agent tells of its session, as clients see it, in
// results and in events. In an event a part that is absent is as it was.
type AgentSession struct {
	Agent    *agentInfo     `json:"agent,omitempty" doc:"Which program it is, in its own words."`
	Mode     *selection     `json:"mode,omitempty" doc:"The mode that it is in, and those that it has; none is available of an agent without modes."`
	Model    *selection     `json:"model,omitempty" doc:"The model that it works with, and those that it has; none is available of an agent that does not say."`
	Options  []agentOption  `json:"options,omitzero" doc:"What else it can be set to, in its order; those that choose its mode and its model are among them."`
	Commands []agentCommand `json:"commands,omitzero" doc:"Its slash commands: a prompt may begin with / and the name of one."`
	Info     *sessionInfo   `json:"info,omitempty" doc:"What it calls the session."`

	Background []BackgroundTask `json:"background,omitzero" doc:"What it does in the background, while no prompt runs."`
}

// A BackgroundTask is something that an agent does while no prompt runs, as clients see it.
type BackgroundTask struct {
	ID    string `json:"id"`
	Kind  string `json:"kind" doc:"tool_call, terminal or process."`
	Title string `json:"title,omitempty" doc:"A tool call's title, or a command."`

	Stoppable bool `json:"stoppable,omitempty" doc:"interruptSession can stop it alone."`
}

// BackgroundOf is what agents do in the background, as clients see it; nil stays nil.
func BackgroundOf(list []domain.BackgroundTask) []BackgroundTask {
	if list == nil {
		return nil
	}
	made := make([]BackgroundTask, len(list))
	for i, b := range list {
		made[i] = BackgroundTask(b)
	}
	return made
}

type agentInfo struct {
	Name    string `json:"name,omitempty"`
	Title   string `json:"title,omitempty"`
	Version string `json:"version,omitempty"`
}

type selection struct {
	Current   string   `json:"current" doc:"An id; empty where the agent does not say."`
	Available []choice `json:"available"`
}

type choice struct {
	ID          string          `json:"id"`
	Name        string          `json:"name,omitempty"`
	Description string          `json:"description,omitempty"`
	Group       string          `json:"group,omitempty" doc:"The heading under which the agent lists it."`
	Extra       json.RawMessage `json:"extra,omitempty" doc:"What else the agent says of it, as it says it."`
}

type agentOption struct {
	ID          string          `json:"id"`
	Name        string          `json:"name,omitempty"`
	Description string          `json:"description,omitempty"`
	Category    string          `json:"category,omitempty" doc:"mode, model, thought_level, or another word."`
	Type        string          `json:"type,omitempty" doc:"select, boolean, or another word."`
	Current     string          `json:"current" doc:"The id of a value; true or false of a boolean; empty of a type that is not known."`
	Values      []choice        `json:"values" doc:"Those that there are; empty of a type that is not known."`
	Extra       json.RawMessage `json:"extra,omitempty" doc:"What else the agent says of it, as it says it."`
}

type agentCommand struct {
	Name        string          `json:"name" doc:"Without the slash."`
	Description string          `json:"description,omitempty"`
	InputHint   string          `json:"input_hint,omitempty" doc:"What may follow it, in words."`
	Extra       json.RawMessage `json:"extra,omitempty" doc:"What else the agent says of it, as it says it."`
}

type sessionInfo struct {
	Title     string `json:"title,omitempty"`
	UpdatedAt string `json:"updated_at,omitempty" doc:"As the agent writes it."`
}

// AgentSessionOf is what an agent tells of its session, as clients see it.
func AgentSessionOf(s domain.AgentSession) AgentSession {
	a := AgentSession{Agent: (*agentInfo)(s.Agent), Mode: selectionOf(s.Modes), Model: selectionOf(s.Models)}
	if s.Options != nil {
		a.Options = make([]agentOption, len(s.Options))
	}
	for i, o := range s.Options {
		a.Options[i] = agentOption{o.ID, o.Name, o.Description, o.Category, o.Type, o.Current, choicesOf(o.Choices), o.Extra}
	}
	if s.Commands != nil {
		a.Commands = make([]agentCommand, len(s.Commands))
	}
	for i, c := range s.Commands {
		a.Commands[i] = agentCommand(c)
	}
	a.Background = BackgroundOf(s.Background)
	if s.Info != nil {
		a.Info = &sessionInfo{s.Info.Title, s.Info.Updated}
	}
	return a
}

func selectionOf(s *domain.Selection) *selection {
	if s == nil {
		return nil
	}
	return &selection{s.Current, choicesOf(s.Choices)}
}

func choicesOf(list []domain.Choice) []choice {
	choices := make([]choice, len(list))
	for i, c := range list {
		choices[i] = choice(c)
	}
	return choices
}

type agentSessionData struct {
	ids
	AgentSession
	Truncated bool `json:"truncated,omitempty"`
}
