package signin

import "encoding/json"

// What is taken of an agent's messages. What is not known is passed over: an
// agent that is newer has to work.
type (
	initializeResult struct {
		AgentCapabilities struct {
			Auth struct {
				Logout json.RawMessage `json:"logout"`
			} `json:"auth"`
			SessionCapabilities struct {
				Delete json.RawMessage `json:"delete"`
			} `json:"sessionCapabilities"`
			Meta struct {
				AuthStatus json.RawMessage `json:"authStatus"` // claude: it says who is signed in
			} `json:"_meta"`
		} `json:"agentCapabilities"`
		AgentInfo struct {
			Name    string `json:"name"`
			Title   string `json:"title"`
			Version string `json:"version"`
		} `json:"agentInfo"`
		AuthMethods []authMethod `json:"authMethods"`
	}
	authMethod struct {
		ID          string            `json:"id"`
		Name        string            `json:"name"`
		Description string            `json:"description"`
		Type        string            `json:"type"`
		Args        []string          `json:"args"`
		Env         map[string]string `json:"env"`
		Variable    string            `json:"varName"` // env_var, as it was first
		Variables   []variable        `json:"vars"`
		Meta        struct {
			// A command of its own, of agents that are older than the type terminal.
			Terminal *struct {
				Command string            `json:"command"`
				Args    []string          `json:"args"`
				Env     map[string]string `json:"env"`
			} `json:"terminal-auth"`
		} `json:"_meta"`
	}
	variable struct {
		Name     string `json:"name"`
		Optional bool   `json:"optional"`
	}
	// authStatus is told by claude, in the notification _auth/status_update.
	authStatus struct {
		Kind   string `json:"kind"`
		Label  string `json:"label"`
		Detail string `json:"detail"`
	}
	sessionResult struct {
		SessionID string `json:"sessionId"`
	}
)

// UnmarshalJSON takes a method as far as it is understood: one that is odd must
// not hide the others.
func (m *authMethod) UnmarshalJSON(raw []byte) error {
	type plain authMethod
	var known plain
	if json.Unmarshal(raw, &known) != nil {
		var name struct{ ID, Name string }
		_ = json.Unmarshal(raw, &name)
		known = plain{ID: name.ID, Name: name.Name}
	}
	*m = authMethod(known)
	return nil
}

// UnmarshalJSON takes a variable by its name alone, too.
func (v *variable) UnmarshalJSON(raw []byte) error {
	type plain variable
	if json.Unmarshal(raw, (*plain)(v)) != nil {
		return json.Unmarshal(raw, &v.Name)
	}
	return nil
}

// variables are those that a method cannot do without.
func (m authMethod) variables() []string {
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

func present(raw json.RawMessage) bool { return len(raw) > 0 && string(raw) != "null" }
