package eventrow

import (
	"encoding/json"

	"github.com/duet-rpc/duet-rpc/internal/domain"
)

// agentSessionRow is a domain.AgentSession, whose parts may be absent: an empty
// list is none of the kind.
type agentSessionRow struct {
	Agent    *agentInfoRow     `json:"agent,omitempty"`
	Modes    *selectionRow     `json:"modes,omitempty"`
	Models   *selectionRow     `json:"models,omitempty"`
	Options  []agentOptionRow  `json:"options,omitzero"`
	Commands []agentCommandRow `json:"commands,omitzero"`
	Info     *agentTitleRow    `json:"info,omitempty"`
}

type agentInfoRow struct {
	Name    string `json:"name,omitempty"`
	Title   string `json:"title,omitempty"`
	Version string `json:"version,omitempty"`
}

type selectionRow struct {
	Current string      `json:"current,omitempty"`
	Choices []choiceRow `json:"choices,omitempty"`
}

type choiceRow struct {
	ID          string          `json:"id"`
	Name        string          `json:"name,omitempty"`
	Description string          `json:"description,omitempty"`
	Group       string          `json:"group,omitempty"`
	Extra       json.RawMessage `json:"extra,omitempty"`
}

type agentOptionRow struct {
	ID          string          `json:"id"`
	Name        string          `json:"name,omitempty"`
	Description string          `json:"description,omitempty"`
	Category    string          `json:"category,omitempty"`
	Type        string          `json:"type,omitempty"`
	Current     string          `json:"current,omitempty"`
	Choices     []choiceRow     `json:"choices,omitempty"`
	Extra       json.RawMessage `json:"extra,omitempty"`
}

type agentCommandRow struct {
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	InputHint   string          `json:"hint,omitempty"`
	Extra       json.RawMessage `json:"extra,omitempty"`
}

type agentTitleRow struct {
	Title   string `json:"title,omitempty"`
	Updated string `json:"updated,omitempty"`
}

type agentSessionChangedRow struct {
	agentSessionRow
	Truncated bool `json:"truncated,omitempty"`
}

// EncodeAgentSession spells what an agent tells of its session as JSON.
func EncodeAgentSession(s domain.AgentSession) (string, error) {
	return plainJSON(agentSessionRowOf(s))
}

// DecodeAgentSession reads what EncodeAgentSession made.
func DecodeAgentSession(text string) (domain.AgentSession, error) {
	var r agentSessionRow
	err := json.Unmarshal([]byte(text), &r)
	return r.session(), err
}

func agentSessionRowOf(s domain.AgentSession) agentSessionRow {
	return agentSessionRow{
		Agent: (*agentInfoRow)(s.Agent), Modes: selectionRowOf(s.Modes), Models: selectionRowOf(s.Models), Info: (*agentTitleRow)(s.Info),
		Options: mapped(s.Options, func(o domain.AgentOption) agentOptionRow {
			return agentOptionRow{o.ID, o.Name, o.Description, o.Category, o.Type, o.Current, choiceRows(o.Choices), o.Extra}
		}),
		Commands: mapped(s.Commands, func(c domain.AgentCommand) agentCommandRow { return agentCommandRow(c) }),
	}
}

func (r agentSessionRow) session() domain.AgentSession {
	return domain.AgentSession{
		Agent: (*domain.AgentInfo)(r.Agent), Modes: r.Modes.selection(), Models: r.Models.selection(), Info: (*domain.AgentSessionInfo)(r.Info),
		Options: mapped(r.Options, func(o agentOptionRow) domain.AgentOption {
			return domain.AgentOption{
				ID: o.ID, Name: o.Name, Description: o.Description, Category: o.Category, Type: o.Type, Current: o.Current, Choices: choices(o.Choices), Extra: o.Extra,
			}
		}),
		Commands: mapped(r.Commands, func(c agentCommandRow) domain.AgentCommand { return domain.AgentCommand(c) }),
	}
}

func selectionRowOf(s *domain.Selection) *selectionRow {
	if s == nil {
		return nil
	}
	return &selectionRow{s.Current, choiceRows(s.Choices)}
}

func (r *selectionRow) selection() *domain.Selection {
	if r == nil {
		return nil
	}
	return &domain.Selection{Current: r.Current, Choices: choices(r.Choices)}
}

func choiceRows(list []domain.Choice) []choiceRow {
	return mapped(list, func(c domain.Choice) choiceRow { return choiceRow(c) })
}

func choices(list []choiceRow) []domain.Choice {
	return mapped(list, func(r choiceRow) domain.Choice { return domain.Choice(r) })
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
