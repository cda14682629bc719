package acp

import (
	"encoding/json"
	"strings"
)

// Workspace is the part about a session's place in each request that makes or opens a session.
type Workspace struct {
	CWD                   string          `json:"cwd,omitempty"`
	AdditionalDirectories []string        `json:"additionalDirectories,omitempty"`
	MCPServers            json.RawMessage `json:"mcpServers,omitempty"` // each an MCPServer
	SystemPrompt          *SystemPrompt   `json:"systemPrompt,omitempty"`
	Meta                  any             `json:"_meta,omitempty"`
}

// A SystemPrompt is a client's system prompt for a new session.
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

// An MCPServer is a server that the agent uses.
type MCPServer struct {
	Type    string `json:"type,omitempty"` // "": a program to start
	Name    string `json:"name"`
	Command string `json:"command,omitempty"`

	Args    []string   `json:"args,omitempty"`
	Env     []Variable `json:"env,omitempty"`
	URL     string     `json:"url,omitempty"`
	Headers []Variable `json:"headers,omitempty"`
}

// MarshalJSON implements json.Marshaler. Version 1 requires the members for a program's arguments
// and variables, and for an address's headers, even if they are empty.
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

	ReplayFrom *ReplayCursor `json:"replayFrom,omitempty"` // in version 2
}

// A ReplayCursor is the beginning of the history that a client wants.
type ReplayCursor struct {
	Type string `json:"type"` // ReplayFromStart
}

// ReplayFromStart is the cursor of a client that wants the whole session.
const ReplayFromStart = "start"

// OpenedSession is the result of a request that makes or opens a session.
type OpenedSession struct {
	SessionID     string         `json:"sessionId,omitempty"`
	Modes         *SessionModes  `json:"modes,omitempty"`
	ConfigOptions []ConfigOption `json:"configOptions,omitempty"`
	Commands      []Command      `json:"-"` // in version 2; an update in version 1
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

// A ConfigOption is an option that a client shows for a session.
type ConfigOption struct {
	ID           string        `json:"id"`
	Name         string        `json:"name"`
	Description  string        `json:"description,omitempty"`
	Category     string        `json:"category,omitempty"`
	Type         string        `json:"type"`         // select or boolean
	CurrentValue any           `json:"currentValue"` // a string, or a bool
	Options      []ConfigValue `json:"options,omitzero"`
}

// A ConfigValue is a value of an option.
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

// ConfigOptions is the result of setting an option: all options.
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

// SteerRequest is a message for a working agent. The method is an extension of claude-agent-acp
// and codex-acp.
type SteerRequest struct {
	SessionID string            `json:"sessionId"`
	Prompt    []json.RawMessage `json:"prompt"` // content blocks
}

// SteerResponse reports what happened to the message.
type SteerResponse struct {
	Outcome string `json:"outcome"`
	Reason  string `json:"reason,omitempty"`
}

// PromptResponse ends the turn. In version 2 it means that the prompt is in the transcript.
type PromptResponse struct {
	StopReason string `json:"stopReason"`
	Usage      *Usage `json:"usage,omitempty"`
	MessageID  string `json:"-"` // in version 2
}

// Usage is the number of tokens that a turn has used.
type Usage struct {
	Total       int64 `json:"totalTokens"`
	Input       int64 `json:"inputTokens"`
	Output      int64 `json:"outputTokens"`
	CachedRead  int64 `json:"cachedReadTokens,omitempty"`
	CachedWrite int64 `json:"cachedWriteTokens,omitempty"`
}

// Stop reasons of a turn.
const (
	StopEndTurn         = "end_turn"
	StopMaxTokens       = "max_tokens"
	StopMaxTurnRequests = "max_turn_requests"
	StopRefusal         = "refusal"
	StopCancelled       = "cancelled"
	StopError           = "error" // in version 2; an error response in version 1
)

// InitializeResponse is the agent's description of itself.
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

// AgentCapabilities are the capabilities of an agent.
type AgentCapabilities struct {
	LoadSession         bool                `json:"loadSession"`
	PromptCapabilities  PromptCapabilities  `json:"promptCapabilities"`
	MCPCapabilities     MCPCapabilities     `json:"mcpCapabilities"`
	SessionCapabilities SessionCapabilities `json:"sessionCapabilities"`

	Auth AgentAuthCapabilities `json:"auth"`
	Meta map[string]any        `json:"_meta,omitempty"`
}

// AgentAuthCapabilities are an agent's capabilities for signing in and out.
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

	// Of the question, for a client with states.
	Title       string `json:"-"`
	Description string `json:"-"`
	IsAboutCall bool   `json:"-"` // else ToolCall only describes the question
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

// A PermissionResponse is the user's answer. The protocol has no member for a changed input or a
// comment, so they are in _meta.duet. Only an agent with {"duet":{"updatedInput":true}} in the
// _meta of its capabilities runs a tool with a changed input.
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

// An ElicitationResponse is the user's reaction.
type ElicitationResponse struct {
	Action  string          `json:"action"` // accept, decline or cancel
	Content json.RawMessage `json:"content,omitempty"`
}
