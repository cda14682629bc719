package schema

import (
	"encoding/json"
	"strings"
)

// Workspace is what a client says of a session's place with each method that makes or
// opens one.
type Workspace struct {
	CWD                   string          `json:"cwd,omitempty"`
	AdditionalDirectories []string        `json:"additionalDirectories,omitempty"`
	MCPServers            json.RawMessage `json:"mcpServers,omitempty"`
	SystemPrompt          *SystemPrompt   `json:"systemPrompt,omitempty"`
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

// A Variable is one of the environment, or a header.
type Variable struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// NewRequest makes a session.
type NewRequest struct{ Workspace }

// OpenRequest loads, resumes or forks a session.
type OpenRequest struct {
	SessionID string `json:"sessionId"`
	Workspace

	ReplayFrom *struct {
		Type string `json:"type"` // ReplayFromStart
	} `json:"replayFrom,omitempty"` // of version 2
}

// ReplayFromStart is the cursor of a client that wants the whole conversation.
const ReplayFromStart = "start"

// SessionRequest names a session.
type SessionRequest struct {
	SessionID string `json:"sessionId"`
}

// Opened is what a client is told of a session that it has made or opened.
type Opened struct {
	SessionID     string         `json:"sessionId,omitempty"`
	Modes         *Modes         `json:"modes,omitempty"`
	ConfigOptions []ConfigOption `json:"configOptions,omitempty"`
	Commands      []Command      `json:"-"` // of version 2; an update in version 1
}

// Modes are the modes of a session.
type Modes struct {
	Current   string `json:"currentModeId"`
	Available []Mode `json:"availableModes"`
}

// A Mode is one of them.
type Mode struct {
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

// ListRequest asks for sessions.
type ListRequest struct {
	CWD    *string `json:"cwd,omitempty"`
	Cursor *string `json:"cursor,omitempty"`
}

// ListResponse is a page of sessions.
type ListResponse struct {
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
	Injected       = "injected"
	PromptRequired = "promptRequired"
	Queued         = "queued"
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
	EndTurn         = "end_turn"
	MaxTokens       = "max_tokens"
	MaxTurnRequests = "max_turn_requests"
	Refusal         = "refusal"
	Cancelled       = "cancelled"
	StoppedByError  = "error" // of version 2; an error response in version 1
)
