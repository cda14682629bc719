package wire

import (
	"context"
	"encoding/json"

	"github.com/duet-rpc/duet-rpc/client"
	"github.com/duet-rpc/duet-rpc/internal/protocol"
)

// Stages of a build in buildProgress. Others are ends.
const (
	BuildWaits   = "waiting"
	BuildStarted = "started"
	BuildOutput  = "output"
)

// Automation is the result of automation.status.
type Automation struct {
	Enabled bool      `json:"enabled"`
	Rules   []Trigger `json:"rules"`
	Problem string    `json:"problem"`
	Issues  []string  `json:"issues"`
}

// A Trigger runs an action after an event.
type Trigger struct {
	ID               string        `json:"id"`
	Action           TriggerAction `json:"action"`
	Enabled          bool          `json:"enabled"`
	RequiresApproval bool          `json:"requiresApproval"`
	CooldownMs       int64         `json:"cooldownMs"`
	Description      string        `json:"description"`
	When             string        `json:"when"`
	LastFired        string        `json:"lastFired"`
	NextFire         string        `json:"nextFire"`
	File             string        `json:"file"`
	Line             int           `json:"line"`

	Raw json.RawMessage `json:"-"` // unchanged
}

// UnmarshalJSON also keeps the JSON.
func (t *Trigger) UnmarshalJSON(text []byte) error {
	type plain Trigger
	err := json.Unmarshal(text, (*plain)(t))
	t.Raw = append(json.RawMessage(nil), text...)
	return err
}

// State is "on" or "off".
func (t Trigger) State() string {
	if t.Enabled {
		return "on"
	}
	return "off"
}

// Does describes the action.
func (t Trigger) Does() string {
	if t.RequiresApproval {
		return t.Action.String() + " (asks first)"
	}
	return t.Action.String()
}

// A TriggerAction is the action of a trigger.
type TriggerAction struct {
	Type    string `json:"type"`
	Prompt  string `json:"prompt"`
	Agent   string `json:"agent"`
	Message string `json:"message"`
	URL     string `json:"url"`
}

// String describes the action.
func (a TriggerAction) String() string {
	text := a.Prompt + a.Message + a.URL
	if a.Agent != "" {
		return a.Type + " " + a.Agent + ": " + text
	}
	return a.Type + ": " + text
}

// A TriggerExecution is an entry of automation.log.
type TriggerExecution struct {
	RuleID    string `json:"ruleId"`
	EventType string `json:"eventType"`
	Status    string `json:"status"`
	Timestamp string `json:"timestamp"`
	TaskID    string `json:"taskId"`
	Error     string `json:"error"`
}

// A TriggerTrial is a result of automation.test.
type TriggerTrial struct {
	RuleID string        `json:"ruleId"`
	Fits   bool          `json:"fits"`
	Why    string        `json:"why"`
	Does   TriggerAction `json:"does"`
}

// Terminals lists the hub's terminals.
func Terminals(ctx context.Context, c *client.Client) ([]protocol.Terminal, json.RawMessage, error) {
	r, raw, err := Call[struct{ Terminals []protocol.Terminal }](ctx, c, "terminal.list", nil)
	return r.Terminals, raw, err
}
