package domain

import "strings"

// A TurnTrigger is why an agent-initiated turn started. Kind is the agent's own word, Label
// names what has finished, such as a background command. Both are "" if the agent does not say.
type TurnTrigger struct {
	Kind  string
	Label string
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
