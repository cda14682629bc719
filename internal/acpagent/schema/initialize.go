package schema

import "encoding/json"

// An Implementation is a program, as it names itself.
type Implementation struct {
	Name    string `json:"name"`
	Title   string `json:"title,omitempty"`
	Version string `json:"version"`
}

// InitializeRequest is the first request of a connection.
type InitializeRequest struct {
	ProtocolVersion    int             `json:"protocolVersion"`
	ClientCapabilities json.RawMessage `json:"clientCapabilities,omitempty"`
	ClientInfo         json.RawMessage `json:"clientInfo,omitempty"`

	// Those of version 2. A client that speaks both versions may send all.
	Capabilities json.RawMessage `json:"capabilities,omitempty"`
	Info         json.RawMessage `json:"info,omitempty"`
}

// ClientCapabilities are what a client can do for an agent.
type ClientCapabilities struct {
	FS struct {
		ReadTextFile  bool `json:"readTextFile,omitempty"`
		WriteTextFile bool `json:"writeTextFile,omitempty"`
	} `json:"fs,omitzero"`
	Terminal bool `json:"terminal,omitempty"`
	Session  struct {
		ConfigOptions struct {
			Boolean json.RawMessage `json:"boolean,omitempty"`
		} `json:"configOptions,omitzero"`
	} `json:"session,omitzero"`
	Elicitation struct {
		Form json.RawMessage `json:"form,omitempty"`
		URL  json.RawMessage `json:"url,omitempty"`
	} `json:"elicitation,omitzero"`
	Auth struct {
		Terminal json.RawMessage `json:"terminal,omitempty"` // true or, in version 2, an object
	} `json:"auth,omitzero"`
	Meta struct {
		TerminalAuth   bool `json:"terminal-auth,omitempty"`   // as Auth.Terminal was called before it was in the protocol
		TerminalOutput bool `json:"terminal_output,omitempty"` // it shows terminals that are the agent's
	} `json:"_meta,omitzero"`
}

// ReadCapabilities reads what a client says that it can do. What cannot be read of it
// it cannot do.
func ReadCapabilities(raw json.RawMessage) (c ClientCapabilities) {
	_ = json.Unmarshal(raw, &c)
	return c
}

// SignsInInTerminal reports whether the client runs the agent's program in a terminal for
// the user to sign in.
func (c ClientCapabilities) SignsInInTerminal() bool {
	return Has(c.Auth.Terminal) || c.Meta.TerminalAuth
}

// Has reports whether a capability is there whose value is an object.
func Has(capability json.RawMessage) bool {
	return len(capability) > 0 && string(capability) != "null" && string(capability) != "false"
}

// InitializeResponse says what the agent can do.
type InitializeResponse struct {
	ProtocolVersion   int               `json:"protocolVersion"`
	AgentCapabilities AgentCapabilities `json:"agentCapabilities"`
	AgentInfo         Implementation    `json:"agentInfo"`
	AuthMethods       []AuthMethod      `json:"authMethods"`
	Meta              AgentMeta         `json:"_meta"`
}

// AgentMeta names extensions of the protocol.
type AgentMeta struct {
	Steering struct {
		Supported bool `json:"supported"`
	} `json:"steering"`
}

// AgentCapabilities are what an agent can do.
type AgentCapabilities struct {
	LoadSession         bool                `json:"loadSession"`
	PromptCapabilities  PromptCapabilities  `json:"promptCapabilities"`
	MCPCapabilities     MCPCapabilities     `json:"mcpCapabilities"`
	SessionCapabilities SessionCapabilities `json:"sessionCapabilities"`

	Auth AgentAuthCapabilities `json:"auth"`
}

// AgentAuthCapabilities say what an agent can do about signing in and out.
type AgentAuthCapabilities struct {
	Logout *Present `json:"logout,omitempty"`
}

// PromptCapabilities say which content prompts may have beside text and links.
type PromptCapabilities struct {
	Image           bool `json:"image"`
	Audio           bool `json:"audio"`
	EmbeddedContext bool `json:"embeddedContext"`
}

// MCPCapabilities say which MCP servers are taken beside those that are started.
type MCPCapabilities struct {
	HTTP bool `json:"http"`
	SSE  bool `json:"sse"`
}

// A Present is the value of a capability that has no more to say.
type Present struct{}

// SessionCapabilities say what can be done with sessions beside beginning one.
type SessionCapabilities struct {
	List                  *Present `json:"list,omitempty"`
	Resume                *Present `json:"resume,omitempty"`
	Close                 *Present `json:"close,omitempty"`
	Delete                *Present `json:"delete,omitempty"`
	Fork                  *Present `json:"fork,omitempty"`
	AdditionalDirectories *Present `json:"additionalDirectories,omitempty"`
	SystemPrompt          *Present `json:"systemPrompt,omitempty"` // {}: mode append
}

// An AuthMethod is a way to sign in.
type AuthMethod struct {
	ID          string   `json:"id"`
	Name        string   `json:"name"`
	Description string   `json:"description,omitempty"`
	Type        string   `json:"type,omitempty"`
	Args        []string `json:"args,omitempty"`
}

// AuthenticateRequest asks to sign in; auth/login of version 2 has the same parameters.
type AuthenticateRequest struct {
	MethodID string `json:"methodId"`
}
