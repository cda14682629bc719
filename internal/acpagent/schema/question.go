package schema

import "encoding/json"

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

// A PermissionResponse is the user's answer.
type PermissionResponse struct {
	Outcome struct {
		Outcome  string `json:"outcome"` // selected or cancelled
		OptionID string `json:"optionId"`
	} `json:"outcome"`
}

// Selected is the outcome of a user who has chosen an option.
const Selected = "selected"

// An ElicitationRequest asks the user to fill in a form, or to open an address.
type ElicitationRequest struct {
	SessionID string          `json:"sessionId"`
	Mode      string          `json:"mode"` // form or url
	Message   string          `json:"message"`
	Schema    json.RawMessage `json:"requestedSchema,omitempty"`
	ID        string          `json:"elicitationId,omitempty"`
	URL       string          `json:"url,omitempty"`
}

// An ElicitationResponse is what the user did.
type ElicitationResponse struct {
	Action  string          `json:"action"` // accept, decline or cancel
	Content json.RawMessage `json:"content"`
}
