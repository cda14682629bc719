package domain

import (
	"encoding/json"
	"strings"
)

// A TurnTrigger is why an agent went on by itself: Kind is the agent's own word, Label what
// has ended, such as the command of a background task. Both are "" where it does not tell.
type TurnTrigger struct {
	Kind  string `json:"kind"`
	Label string `json:"label,omitempty"`
}

// String says it to people.
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

// ownTurn is what the metadata of a run of [SourceAgent] have.
type ownTurn struct {
	Trigger TurnTrigger `json:"turn_trigger"`
}

// SetTrigger notes why the agent of a run went on by itself.
func (r *Run) SetTrigger(t TurnTrigger) {
	r.Metadata, _ = json.Marshal(ownTurn{t}) // strings
}

// Trigger is why the agent of a run went on by itself.
func (r Run) Trigger() TurnTrigger {
	var own ownTurn
	if len(r.Metadata) > 0 {
		_ = json.Unmarshal(r.Metadata, &own) // else nobody knows
	}
	return own.Trigger
}

// Summary is what a run is about, for lists: what a human asked for, or why its agent went
// on by itself.
func (r Run) Summary() string {
	if r.Source == SourceAgent {
		return r.Trigger().String()
	}
	return RequestOf(r.Prompt)
}
