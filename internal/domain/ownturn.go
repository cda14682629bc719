package domain

import (
	"encoding/json"
	"strings"
)

// A TurnTrigger is why an agent-initiated turn started. Kind is the agent's own word, Label
// names what has finished, such as a background command. Both are "" if the agent does not say.
type TurnTrigger struct {
	Kind  string `json:"kind"`
	Label string `json:"label,omitempty"`
}

// String describes the trigger for users.
func (t TurnTrigger) String() string {
	text := "Continued by itself"
	switch kind := strings.ToLower(t.Kind); {
	case strings.Contains(kind, "goal"):
		text += ": working towards its goal"
	case strings.Contains(kind, "background"), strings.Contains(kind, "task"):
		text += ": background task finished"
	case kind != "":
		text += ": " + strings.NewReplacer("_", " ", "-", " ").Replace(t.Kind)
	}
	if t.Label != "" {
		text += " (" + t.Label + ")"
	}
	return text
}

// ownTurn is the metadata of a run of [SourceAgent]. It keeps what the metadata of the run
// before say about the configured trigger that led there, so that triggers do not loop.
type ownTurn struct {
	Trigger    TurnTrigger `json:"turn_trigger,omitzero"`
	Configured string      `json:"trigger,omitempty"`
	Depth      int         `json:"trigger_depth,omitempty"`
}

// SetTrigger stores the trigger in the metadata of a run that follows another one.
func (r *Run) SetTrigger(t TurnTrigger, after Run) {
	var own ownTurn
	if after.Source == SourceTrigger || after.Source == SourceAgent {
		_ = json.Unmarshal(after.Metadata, &own) // empty if there is none
	}
	own.Trigger = t
	r.Metadata, _ = json.Marshal(own) // texts and a number
}

// Trigger returns the trigger from the run's metadata.
func (r Run) Trigger() TurnTrigger {
	var own ownTurn
	if len(r.Metadata) > 0 {
		_ = json.Unmarshal(r.Metadata, &own) // unknown otherwise
	}
	return own.Trigger
}

// Summary describes a run in lists: the user's request, or why its agent continued.
func (r Run) Summary() string {
	if r.Source == SourceAgent {
		return r.Trigger().String()
	}
	return RequestOf(r.Prompt)
}
