package acpagent

import (
	"encoding/json"
)

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
