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
