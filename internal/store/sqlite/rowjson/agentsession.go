package rowjson

import (
	"encoding/json"

	"github.com/duet-rpc/duet-rpc/internal/domain"
)

// An AgentSession is a domain.AgentSession, whose parts may be absent: an empty
// list is none of the kind.
type AgentSession struct {
	Agent    *agentInfo     `json:"agent,omitempty"`
	Modes    *selection     `json:"modes,omitempty"`
	Models   *selection     `json:"models,omitempty"`
	Options  []agentOption  `json:"options,omitzero"`
	Commands []agentCommand `json:"commands,omitzero"`
	Info     *agentTitle    `json:"info,omitempty"`
	Takes    *promptTakes   `json:"takes,omitempty"`

	Background []backgroundTask `json:"background,omitzero"`
}

type backgroundTask struct {
	ID    string `json:"id"`
	Kind  string `json:"kind"`
	Title string `json:"title,omitempty"`

	Stoppable bool `json:"stoppable,omitempty"`
}

type promptTakes struct {
	Image    bool `json:"image,omitempty"`
	Audio    bool `json:"audio,omitempty"`
	Resource bool `json:"resource,omitempty"`
}

type agentInfo struct {
	Name    string `json:"name,omitempty"`
	Title   string `json:"title,omitempty"`
	Version string `json:"version,omitempty"`
}

type selection struct {
	Current string   `json:"current,omitempty"`
	Choices []Choice `json:"choices,omitempty"`
}

// A Choice is a domain.Choice.
type Choice struct {
	ID          string          `json:"id"`
	Name        string          `json:"name,omitempty"`
	Description string          `json:"description,omitempty"`
	Group       string          `json:"group,omitempty"`
	Extra       json.RawMessage `json:"extra,omitempty"`
}

type agentOption struct {
	ID          string          `json:"id"`
	Name        string          `json:"name,omitempty"`
	Description string          `json:"description,omitempty"`
	Category    string          `json:"category,omitempty"`
	Type        string          `json:"type,omitempty"`
	Current     string          `json:"current,omitempty"`
	Choices     []Choice        `json:"choices,omitempty"`
	Extra       json.RawMessage `json:"extra,omitempty"`
}

type agentCommand struct {
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	InputHint   string          `json:"hint,omitempty"`
	Extra       json.RawMessage `json:"extra,omitempty"`
}

type agentTitle struct {
	Title   string `json:"title,omitempty"`
	Updated string `json:"updated,omitempty"`
}

// AgentSessionOf is a value as rows have it.
func AgentSessionOf(s domain.AgentSession) AgentSession {
	return AgentSession{
		Agent: (*agentInfo)(s.Agent), Modes: selectionOf(s.Modes), Models: selectionOf(s.Models), Info: (*agentTitle)(s.Info), Takes: (*promptTakes)(s.Takes),
		Options: mapped(s.Options, func(o domain.AgentOption) agentOption {
			return agentOption{o.ID, o.Name, o.Description, o.Category, o.Type, o.Current, ChoicesOf(o.Choices), o.Extra}
		}),
		Commands:   mapped(s.Commands, func(c domain.AgentCommand) agentCommand { return agentCommand(c) }),
		Background: mapped(s.Background, func(b domain.BackgroundTask) backgroundTask { return backgroundTask(b) }),
	}
}

// Value is the value of a row.
func (r AgentSession) Value() domain.AgentSession {
	return domain.AgentSession{
		Agent: (*domain.AgentInfo)(r.Agent), Modes: r.Modes.selection(), Models: r.Models.selection(), Info: (*domain.AgentSessionInfo)(r.Info), Takes: (*domain.PromptTakes)(r.Takes),
		Options: mapped(r.Options, func(o agentOption) domain.AgentOption {
			return domain.AgentOption{
				ID: o.ID, Name: o.Name, Description: o.Description, Category: o.Category, Type: o.Type, Current: o.Current, Choices: Choices(o.Choices), Extra: o.Extra,
			}
		}),
		Commands:   mapped(r.Commands, func(c agentCommand) domain.AgentCommand { return domain.AgentCommand(c) }),
		Background: mapped(r.Background, func(b backgroundTask) domain.BackgroundTask { return domain.BackgroundTask(b) }),
	}
}

func selectionOf(s *domain.Selection) *selection {
	if s == nil {
		return nil
	}
	return &selection{s.Current, ChoicesOf(s.Choices)}
}

func (r *selection) selection() *domain.Selection {
	if r == nil {
		return nil
	}
	return &domain.Selection{Current: r.Current, Choices: Choices(r.Choices)}
}

// ChoicesOf are values as rows have them.
func ChoicesOf(list []domain.Choice) []Choice {
	return mapped(list, func(c domain.Choice) Choice { return Choice(c) })
}

// Choices are the values of rows.
func Choices(list []Choice) []domain.Choice {
	return mapped(list, func(r Choice) domain.Choice { return domain.Choice(r) })
}

// mapped is a list whose items were made into others; nil stays nil.
func mapped[A, B any](list []A, f func(A) B) []B {
	if list == nil {
		return nil
	}
	made := make([]B, len(list))
	for i, v := range list {
		made[i] = f(v)
	}
	return made
}
