package acp

import (
	"cmp"
	"encoding/json"

	"github.com/duet-rpc/duet-rpc/internal/domain"
)

// This file has the sign-in methods that agents advertise in the answer to initialize
// (https://agentclientprotocol.com/protocol/v1/authentication).

// An AuthMethod is a way to sign in. Unknown members are ignored, so that newer agents work.
type AuthMethod struct {
	ID          string      `json:"id"`
	Name        string      `json:"name"`
	Description string      `json:"description,omitempty"`
	Type        string      `json:"type,omitempty"`
	Args        []string    `json:"args,omitempty"`    // of type terminal: added to the agent's own
	Env         environment `json:"env,omitempty"`     // of type terminal
	Variable    string      `json:"varName,omitempty"` // of type env_var, in its first form
	Variables   []variable  `json:"vars,omitempty"`    // of type env_var
	Meta        struct {
		// A command of its own, from agents older than the type terminal.
		Terminal *struct {
			Command string            `json:"command"`
			Args    []string          `json:"args"`
			Env     map[string]string `json:"env"`
		} `json:"terminal-auth"`
		// Set if the agent reads a key of this provider from its environment (codex-acp 2.6).
		APIKey *struct {
			Provider string `json:"provider"`
		} `json:"api-key"`
	} `json:"_meta,omitzero"`
}

type variable struct {
	Name     string `json:"name"`
	Optional bool   `json:"optional"`
}

// UnmarshalJSON decodes the valid members of a method: an invalid method must not hide the
// others.
func (m *AuthMethod) UnmarshalJSON(raw []byte) error {
	type plain AuthMethod
	var known plain
	var texts struct{ ID, MethodID, Name, Description, Type string }
	_ = json.Unmarshal(raw, &texts)
	if json.Unmarshal(raw, &known) != nil {
		known = plain{Name: texts.Name, Description: texts.Description, Type: texts.Type}
	}
	known.ID = cmp.Or(texts.ID, texts.MethodID) // the name in version 2 of the protocol
	*m = AuthMethod(known)
	return nil
}

// An environment is variables by name.
type environment map[string]string

// UnmarshalJSON also accepts the form of version 2 of the protocol, a list of names and values.
func (e *environment) UnmarshalJSON(raw []byte) error {
	var list []struct{ Name, Value string }
	if json.Unmarshal(raw, &list) != nil {
		return json.Unmarshal(raw, (*map[string]string)(e))
	}
	*e = make(environment, len(list))
	for _, v := range list {
		(*e)[v.Name] = v.Value
	}
	return nil
}

// UnmarshalJSON also accepts the name of the variable alone.
func (v *variable) UnmarshalJSON(raw []byte) error {
	type plain variable
	if json.Unmarshal(raw, (*plain)(v)) != nil {
		return json.Unmarshal(raw, &v.Name)
	}
	return nil
}

// Kind returns the type of the method: agent, terminal, env_var, or an unknown one.
func (m AuthMethod) Kind() string {
	kind := cmp.Or(m.Type, domain.SignInByAgent)
	if t := m.Meta.Terminal; kind == domain.SignInByAgent && t != nil && t.Command != "" {
		return domain.SignInInTerminal
	}
	return kind
}

// Offers converts methods for the hub.
func Offers(methods []AuthMethod) (list []domain.AuthMethod) {
	for _, m := range methods {
		if m.ID != "" {
			list = append(list, domain.AuthMethod{ID: m.ID, Name: cmp.Or(m.Name, m.ID), Description: m.Description, Type: m.Kind()})
		}
	}
	return list
}

// Needs returns the variables that a method of type env_var requires.
func (m AuthMethod) Needs() []string {
	var names []string
	if m.Variable != "" {
		names = append(names, m.Variable)
	}
	for _, v := range m.Variables {
		if v.Name != "" && !v.Optional {
			names = append(names, v.Name)
		}
	}
	return names
}

// WithKey returns the id of the first method that needs only variables that the agent has, by
// name; "" if there is none.
func WithKey(methods []AuthMethod, has map[string]bool) string {
	for _, m := range methods {
		if m.readsKey(has) {
			return m.ID
		}
		needs := m.Needs()
		usable := m.Type == domain.SignInByVariable && len(needs) > 0
		for _, name := range needs {
			usable = usable && has[name]
		}
		if usable {
			return m.ID
		}
	}
	return ""
}

// AuthMethodNames returns the names of the variables that have a value. Storing only names stores
// no key.
func AuthMethodNames(env map[string]string) map[string]bool {
	names := make(map[string]bool, len(env))
	for name, value := range env {
		names[name] = value != ""
	}
	return names
}
