package acp

import (
	"encoding/json"
	"strings"
)

// Workspace is what a client says of a session's place with each method that makes or
// opens one.
type Workspace struct {
	CWD                   string          `json:"cwd,omitempty"`
	AdditionalDirectories []string        `json:"additionalDirectories,omitempty"`
	MCPServers            json.RawMessage `json:"mcpServers,omitempty"` // each an MCPServer
	SystemPrompt          *SystemPrompt   `json:"systemPrompt,omitempty"`
	Meta                  any             `json:"_meta,omitempty"`
}

// A SystemPrompt is a client's, for a session that it makes.
type SystemPrompt struct {
	Mode    string    `json:"mode"` // SystemPromptAppend
	Content []Content `json:"content"`
}

// SystemPromptAppend is the mode of a system prompt that follows the agent's own.
const SystemPromptAppend = "append"

// Text is the text of a system prompt, or "".
func (p *SystemPrompt) Text() string {
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

// An MCPServer is one that the agent is to use.
type MCPServer struct {
	Type    string `json:"type,omitempty"` // "": it is started
	Name    string `json:"name"`
	Command string `json:"command,omitempty"`

	Args    []string   `json:"args,omitempty"`
	Env     []Variable `json:"env,omitempty"`
	URL     string     `json:"url,omitempty"`
	Headers []Variable `json:"headers,omitempty"`
}

// MarshalJSON implements json.Marshaler. Version 1 requires arguments and variables of a program,
// and headers of an address, also where there are none.
func (s MCPServer) MarshalJSON() ([]byte, error) {
	m := map[string]any{"name": s.Name}
	if s.Type != "" {
		m["type"] = s.Type
	}
	if s.URL != "" {
		m["url"], m["headers"] = s.URL, append([]Variable{}, s.Headers...)
	} else {
		m["command"], m["args"], m["env"] = s.Command, append([]string{}, s.Args...), append([]Variable{}, s.Env...)
	}
	return json.Marshal(m)
}

// NewSessionRequest makes a session.
type NewSessionRequest struct{ Workspace }

// OpenSessionRequest loads, resumes or forks a session.
type OpenSessionRequest struct {
	SessionID string `json:"sessionId,omitempty"`
	Workspace

	ReplayFrom *struct {
		Type string `json:"type"` // ReplayFromStart
	} `json:"replayFrom,omitempty"` // of version 2
}

// ReplayFromStart is the cursor of a client that wants the whole conversation.
const ReplayFromStart = "start"

// OpenedSession is what a client is told of a session that it has made or opened.
type OpenedSession struct {
	SessionID     string         `json:"sessionId,omitempty"`
	Modes         *SessionModes  `json:"modes,omitempty"`
	ConfigOptions []ConfigOption `json:"configOptions,omitempty"`
	Commands      []Command      `json:"-"` // of version 2; an update in version 1
}

// SessionModes are the modes of a session.
type SessionModes struct {
	Current   string        `json:"currentModeId"`
	Available []SessionMode `json:"availableModes"`
}

// A SessionMode is one of them.
type SessionMode struct {
	ID          string `json:"id"`
	Name        string `json:"name"`
	Description string `json:"description,omitempty"`
}

// A ConfigOption is a choice that a client offers for a session.
type ConfigOption struct {
	ID           string        `json:"id"`
	Name         string        `json:"name"`
	Description  string        `json:"description,omitempty"`
	Category     string        `json:"category,omitempty"`
	Type         string        `json:"type"`         // select or boolean
	CurrentValue any           `json:"currentValue"` // a string, or a bool
	Options      []ConfigValue `json:"options,omitzero"`
}

// A ConfigValue is one of the values of a choice.
type ConfigValue struct {
	Value       string `json:"value"`
	Name        string `json:"name"`
	Description string `json:"description,omitempty"`
}

// SetModeRequest chooses a mode.
type SetModeRequest struct {
	SessionID string `json:"sessionId"`
	ModeID    string `json:"modeId"`
}

// SetConfigOptionRequest chooses a value.
type SetConfigOptionRequest struct {
	SessionID string          `json:"sessionId"`
	ConfigID  string          `json:"configId"`
	Type      string          `json:"type,omitempty"` // boolean or, in version 2, id
	Value     json.RawMessage `json:"value"`          // a string, or a bool
}

// Values of SetConfigOptionRequest.Type.
const (
	ValueID      = "id"
	ValueBoolean = "boolean"
)

// ConfigOptions is what a client is told when it has chosen a value: all of them.
type ConfigOptions struct {
	ConfigOptions []ConfigOption `json:"configOptions"`
}

// ListSessionsRequest asks for sessions.
type ListSessionsRequest struct {
	CWD    *string `json:"cwd,omitempty"`
	Cursor *string `json:"cursor,omitempty"`
}

// ListSessionsResponse is a page of sessions.
type ListSessionsResponse struct {
	Sessions   []SessionInfo `json:"sessions"`
	NextCursor string        `json:"nextCursor,omitempty"`
}

// A SessionInfo is a session in a list.
type SessionInfo struct {
	SessionID             string   `json:"sessionId"`
	CWD                   string   `json:"cwd"`
	AdditionalDirectories []string `json:"additionalDirectories,omitempty"`
	Title                 string   `json:"title,omitempty"`
	UpdatedAt             string   `json:"updatedAt,omitempty"`
}

// PromptRequest begins a turn.
type PromptRequest struct {
	SessionID string            `json:"sessionId"`
	Prompt    []json.RawMessage `json:"prompt"` // content blocks
	Meta      json.RawMessage   `json:"_meta,omitempty"`
}

// Values of SteerResponse.Outcome. Queued is Duet's own.
const (
	SteerInjected       = "injected"
	SteerPromptRequired = "promptRequired"
	SteerQueued         = "queued"
)

// SteerRequest is a message for an agent that works; the method is an extension of
// claude-agent-acp and codex-acp.
type SteerRequest struct {
	SessionID string            `json:"sessionId"`
	Prompt    []json.RawMessage `json:"prompt"` // content blocks
}

// SteerResponse tells what became of it.
type SteerResponse struct {
	Outcome string `json:"outcome"`
	Reason  string `json:"reason,omitempty"`
}

// PromptResponse ends it; in version 2 it says that the prompt is in the conversation.
type PromptResponse struct {
	StopReason string `json:"stopReason"`
	Usage      *Usage `json:"usage,omitempty"`
	MessageID  string `json:"-"` // of version 2
}

// Usage is how many tokens a turn has used.
type Usage struct {
	Total       int64 `json:"totalTokens"`
	Input       int64 `json:"inputTokens"`
	Output      int64 `json:"outputTokens"`
	CachedRead  int64 `json:"cachedReadTokens,omitempty"`
	CachedWrite int64 `json:"cachedWriteTokens,omitempty"`
}

// Why a turn has ended.
const (
	StopEndTurn         = "end_turn"
	StopMaxTokens       = "max_tokens"
	StopMaxTurnRequests = "max_turn_requests"
	StopRefusal         = "refusal"
	StopCancelled       = "cancelled"
	StopError           = "error" // of version 2; an error response in version 1
)

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
	Meta map[string]any        `json:"_meta,omitempty"`
}

// AgentAuthCapabilities say what an agent can do about signing in and out.
type AgentAuthCapabilities struct {
	Logout json.RawMessage `json:"logout,omitempty"`
}

// AuthenticateRequest asks to sign in; auth/login of version 2 has the same parameters.
type AuthenticateRequest struct {
	MethodID string `json:"methodId"`
}

// A PermissionRequest asks the user whether a tool may run.
type PermissionRequest struct {
	SessionID string             `json:"sessionId"`
	ToolCall  ToolCall           `json:"toolCall"`
	Options   []PermissionOption `json:"options"`
}

// A PermissionOption is an answer to choose.
type PermissionOption struct {
	OptionID string `json:"optionId"`
	Name     string `json:"name"`
	Kind     string `json:"kind"`
}

// Kinds of options.
const (
	AllowOnce    = "allow_once"
	AllowAlways  = "allow_always"
	RejectOnce   = "reject_once"
	RejectAlways = "reject_always"
)

// A PermissionResponse is the user's answer. The protocol has no place for a changed input or for
// words, so they are in _meta.duet. Only an agent that says so in the _meta of its capabilities,
// {"duet":{"updatedInput":true}}, runs a tool with a changed input.
type PermissionResponse struct {
	Meta    map[string]any    `json:"_meta,omitempty"`
	Outcome PermissionOutcome `json:"outcome"`
}

// A PermissionOutcome is the option that the user has chosen.
type PermissionOutcome struct {
	Outcome  string `json:"outcome"` // Selected or Cancelled
	OptionID string `json:"optionId,omitempty"`
}

// Values of PermissionOutcome.Outcome. A question is cancelled with its turn.
const (
	Selected  = "selected"
	Cancelled = "cancelled"
)

// An ElicitationRequest asks the user to fill in a form, or to open an address.
type ElicitationRequest struct {
	SessionID  string          `json:"sessionId"`
	ToolCallID string          `json:"toolCallId,omitempty"`
	Mode       string          `json:"mode"` // form or url
	Message    string          `json:"message"`
	Schema     json.RawMessage `json:"requestedSchema,omitempty"`
	ID         string          `json:"elicitationId,omitempty"`
	URL        string          `json:"url,omitempty"`
}

// An ElicitationResponse is what the user did.
type ElicitationResponse struct {
	Action  string          `json:"action"` // accept, decline or cancel
	Content json.RawMessage `json:"content,omitempty"`
}
