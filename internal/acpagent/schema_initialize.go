package acpagent

import (
	"encoding/json"
)

// An implementation is a program, as it names itself.
type implementation struct {
	Name    string `json:"name"`
	Title   string `json:"title,omitempty"`
	Version string `json:"version"`
}

// initializeRequest is the first request of a connection.
type initializeRequest struct {
	ProtocolVersion    int             `json:"protocolVersion"`
	ClientCapabilities json.RawMessage `json:"clientCapabilities,omitempty"`
	ClientInfo         json.RawMessage `json:"clientInfo,omitempty"`

	// Those of version 2. A client that speaks both versions may send all.
	Capabilities json.RawMessage `json:"capabilities,omitempty"`
	Info         json.RawMessage `json:"info,omitempty"`
}

// clientCapabilities are what a client can do for an agent.
type clientCapabilities struct {
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

// readCapabilities reads what a client says that it can do. What cannot be read of it
// it cannot do.
func readCapabilities(raw json.RawMessage) (c clientCapabilities) {
	_ = json.Unmarshal(raw, &c)
	return c
}

// SignsInInTerminal reports whether the client runs the agent's program in a terminal for
// the user to sign in.
func (c clientCapabilities) SignsInInTerminal() bool {
	return schemaHas(c.Auth.Terminal) || c.Meta.TerminalAuth
}

// schemaHas reports whether a capability is there whose value is an object.
func schemaHas(capability json.RawMessage) bool {
	return len(capability) > 0 && string(capability) != "null" && string(capability) != "false"
}

// initializeResponse says what the agent can do.
type initializeResponse struct {
	ProtocolVersion   int                `json:"protocolVersion"`
	AgentCapabilities agentCapabilities  `json:"agentCapabilities"`
	AgentInfo         implementation     `json:"agentInfo"`
	AuthMethods       []schemaAuthMethod `json:"authMethods"`
	Meta              agentMeta          `json:"_meta"`
}

// agentMeta names extensions of the protocol.
type agentMeta struct {
	Steering struct {
		Supported bool `json:"supported"`
	} `json:"steering"`
}

// agentCapabilities are what an agent can do.
type agentCapabilities struct {
	LoadSession         bool                `json:"loadSession"`
	PromptCapabilities  promptCapabilities  `json:"promptCapabilities"`
	MCPCapabilities     mcpCapabilities     `json:"mcpCapabilities"`
	SessionCapabilities sessionCapabilities `json:"sessionCapabilities"`

	Auth agentAuthCapabilities `json:"auth"`
}

// agentAuthCapabilities say what an agent can do about signing in and out.
type agentAuthCapabilities struct {
	Logout *present `json:"logout,omitempty"`
}

// promptCapabilities say which content prompts may have beside text and links.
type promptCapabilities struct {
	Image           bool `json:"image"`
	Audio           bool `json:"audio"`
	EmbeddedContext bool `json:"embeddedContext"`
}

// mcpCapabilities say which MCP servers are taken beside those that are started.
type mcpCapabilities struct {
	HTTP bool `json:"http"`
	SSE  bool `json:"sse"`
}

// A present is the value of a capability that has no more to say.
type present struct{}

// sessionCapabilities say what can be done with sessions beside beginning one.
type sessionCapabilities struct {
	List                  *present `json:"list,omitempty"`
	Resume                *present `json:"resume,omitempty"`
	Close                 *present `json:"close,omitempty"`
	Delete                *present `json:"delete,omitempty"`
	Fork                  *present `json:"fork,omitempty"`
	AdditionalDirectories *present `json:"additionalDirectories,omitempty"`
	SystemPrompt          *present `json:"systemPrompt,omitempty"` // {}: mode append
}

// An schemaAuthMethod is a way to sign in.
type schemaAuthMethod struct {
	ID          string   `json:"id"`
	Name        string   `json:"name"`
	Description string   `json:"description,omitempty"`
	Type        string   `json:"type,omitempty"`
	Args        []string `json:"args,omitempty"`
}

// authenticateRequest asks to sign in; auth/login of version 2 has the same parameters.
type authenticateRequest struct {
	MethodID string `json:"methodId"`
}
