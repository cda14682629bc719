package acpagent

import (
	"encoding/json"
	"strings"
)

// workspace is what a client says of a session's place with each method that makes or
// opens one.
type workspace struct {
	CWD                   string          `json:"cwd,omitempty"`
	AdditionalDirectories []string        `json:"additionalDirectories,omitempty"`
	MCPServers            json.RawMessage `json:"mcpServers,omitempty"`
	SystemPrompt          *systemPrompt   `json:"systemPrompt,omitempty"`
}

// A systemPrompt is a client's, for a session that it makes.
type systemPrompt struct {
	Mode    string    `json:"mode"` // SystemPromptAppend
	Content []content `json:"content"`
}

// systemPromptAppend is the mode of a system prompt that follows the agent's own.
const systemPromptAppend = "append"

// Text is the text of a system prompt, or "".
func (p *systemPrompt) Text() string {
	var texts []string
	if p != nil {
		for _, c := range p.Content {
			if c.Text != nil && *c.Text != "" {
				texts = append(texts, *c.Text)
			}
		}
	}
	return strings.Join(texts, "\n\n")
}

// An mcpServer is one that the agent is to use.
type mcpServer struct {
	Type    string `json:"type,omitempty"` // "": it is started
	Name    string `json:"name"`
	Command string `json:"command,omitempty"`

	Args    []string   `json:"args,omitempty"`
	Env     []variable `json:"env,omitempty"`
	URL     string     `json:"url,omitempty"`
	Headers []variable `json:"headers,omitempty"`
}

// A variable is one of the environment, or a header.
type variable struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// newRequest makes a session.
type newRequest struct{ workspace }

// openRequest loads, resumes or forks a session.
type openRequest struct {
	SessionID string `json:"sessionId"`
	workspace

	ReplayFrom *struct {
		Type string `json:"type"` // ReplayFromStart
	} `json:"replayFrom,omitempty"` // of version 2
}

// replayFromStart is the cursor of a client that wants the whole conversation.
const replayFromStart = "start"

// sessionRequest names a session.
type sessionRequest struct {
	SessionID string `json:"sessionId"`
}

// opened is what a client is told of a session that it has made or opened.
type opened struct {
	SessionID     string               `json:"sessionId,omitempty"`
	Modes         *schemaModes         `json:"modes,omitempty"`
	ConfigOptions []schemaConfigOption `json:"configOptions,omitempty"`
	Commands      []schemaCommand      `json:"-"` // of version 2; an update in version 1
}

// schemaModes are the modes of a session.
type schemaModes struct {
	Current   string       `json:"currentModeId"`
	Available []schemaMode `json:"availableModes"`
}

// A schemaMode is one of them.
type schemaMode struct {
	ID          string `json:"id"`
	Name        string `json:"name"`
	Description string `json:"description,omitempty"`
}

// A schemaConfigOption is a choice that a client offers for a session.
type schemaConfigOption struct {
	ID           string        `json:"id"`
	Name         string        `json:"name"`
	Description  string        `json:"description,omitempty"`
	Category     string        `json:"category,omitempty"`
	Type         string        `json:"type"`         // select or boolean
	CurrentValue any           `json:"currentValue"` // a string, or a bool
	Options      []configValue `json:"options,omitzero"`
}

// A configValue is one of the values of a choice.
type configValue struct {
	Value       string `json:"value"`
	Name        string `json:"name"`
	Description string `json:"description,omitempty"`
}

// setModeRequest chooses a mode.
type setModeRequest struct {
	SessionID string `json:"sessionId"`
	ModeID    string `json:"modeId"`
}

// setConfigOptionRequest chooses a value.
type setConfigOptionRequest struct {
	SessionID string          `json:"sessionId"`
	ConfigID  string          `json:"configId"`
	Type      string          `json:"type,omitempty"` // boolean or, in version 2, id
	Value     json.RawMessage `json:"value"`          // a string, or a bool
}

// Values of SetConfigOptionRequest.Type.
const (
	valueID      = "id"
	valueBoolean = "boolean"
)

// configOptions is what a client is told when it has chosen a value: all of them.
type configOptions struct {
	ConfigOptions []schemaConfigOption `json:"configOptions"`
}

// listRequest asks for sessions.
type listRequest struct {
	CWD    *string `json:"cwd,omitempty"`
	Cursor *string `json:"cursor,omitempty"`
}

// listResponse is a page of sessions.
type listResponse struct {
	Sessions   []sessionInfo `json:"sessions"`
	NextCursor string        `json:"nextCursor,omitempty"`
}

// A sessionInfo is a session in a list.
type sessionInfo struct {
	SessionID             string   `json:"sessionId"`
	CWD                   string   `json:"cwd"`
	AdditionalDirectories []string `json:"additionalDirectories,omitempty"`
	Title                 string   `json:"title,omitempty"`
	UpdatedAt             string   `json:"updatedAt,omitempty"`
}

// promptRequest begins a turn.
type promptRequest struct {
	SessionID string            `json:"sessionId"`
	Prompt    []json.RawMessage `json:"prompt"` // content blocks
	Meta      json.RawMessage   `json:"_meta,omitempty"`
}

// Values of SteerResponse.Outcome. Queued is Duet's own.
const (
	injected       = "injected"
	promptRequired = "promptRequired"
	queued         = "queued"
)

// steerRequest is a message for an agent that works; the method is an extension of
// claude-agent-acp and codex-acp.
type steerRequest struct {
	SessionID string            `json:"sessionId"`
	Prompt    []json.RawMessage `json:"prompt"` // content blocks
}

// steerResponse tells what became of it.
type steerResponse struct {
	Outcome string `json:"outcome"`
	Reason  string `json:"reason,omitempty"`
}

// promptResponse ends it; in version 2 it says that the prompt is in the conversation.
type promptResponse struct {
	StopReason string `json:"stopReason"`
	Usage      *usage `json:"usage,omitempty"`
	MessageID  string `json:"-"` // of version 2
}

// usage is how many tokens a turn has used.
type usage struct {
	Total       int64 `json:"totalTokens"`
	Input       int64 `json:"inputTokens"`
	Output      int64 `json:"outputTokens"`
	CachedRead  int64 `json:"cachedReadTokens,omitempty"`
	CachedWrite int64 `json:"cachedWriteTokens,omitempty"`
}

// Why a turn has ended.
const (
	endTurn         = "end_turn"
	maxTokens       = "max_tokens"
	maxTurnRequests = "max_turn_requests"
	refusal         = "refusal"
	cancelled       = "cancelled"
	stoppedByError  = "error" // of version 2; an error response in version 1
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

// A permissionRequest asks the user whether a tool may run.
type permissionRequest struct {
	SessionID string             `json:"sessionId"`
	ToolCall  schemaToolCall     `json:"toolCall"`
	Options   []permissionOption `json:"options"`
}

// A permissionOption is an answer to choose.
type permissionOption struct {
	OptionID string `json:"optionId"`
	Name     string `json:"name"`
	Kind     string `json:"kind"`
}

// Kinds of options.
const (
	allowOnce    = "allow_once"
	allowAlways  = "allow_always"
	rejectOnce   = "reject_once"
	rejectAlways = "reject_always"
)

// A permissionResponse is the user's answer.
type permissionResponse struct {
	Outcome struct {
		Outcome  string `json:"outcome"` // selected or cancelled
		OptionID string `json:"optionId"`
	} `json:"outcome"`
}

// selected is the outcome of a user who has chosen an option.
const selected = "selected"

// An elicitationRequest asks the user to fill in a form, or to open an address.
type elicitationRequest struct {
	SessionID string          `json:"sessionId"`
	Mode      string          `json:"mode"` // form or url
	Message   string          `json:"message"`
	Schema    json.RawMessage `json:"requestedSchema,omitempty"`
	ID        string          `json:"elicitationId,omitempty"`
	URL       string          `json:"url,omitempty"`
}

// An elicitationResponse is what the user did.
type elicitationResponse struct {
	Action  string          `json:"action"` // accept, decline or cancel
	Content json.RawMessage `json:"content"`
}
