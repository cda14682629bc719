package protocol

import (
	"slices"

	"github.com/duet-rpc/duet-rpc/internal/domain"
)

// statusNames has HumanLayer's name of each state.
var statusNames = map[domain.State]string{
	domain.Draft:        "draft",
	domain.Queued:       "starting",
	domain.Starting:     "starting",
	domain.Running:      "running",
	domain.WaitingInput: "waiting_input",
	domain.Interrupting: "interrupting",
	domain.Completed:    "completed",
	domain.Failed:       "failed",
	domain.TimedOut:     "failed",
	domain.Cancelled:    "interrupted",
	domain.Interrupted:  "interrupted",
	domain.Discarded:    "discarded",
}

// StatusOf returns HumanLayer's name of a state.
func StatusOf(s domain.State) string { return statusNames[s] }

// A SessionStatus is HumanLayer's name of a state.
type SessionStatus string

// Accepted implements schema.Enum.
func (SessionStatus) Accepted() []string {
	return []string{"draft", "starting", "running", "waiting_input", "interrupting", "interrupted", "completed", "failed", "discarded"}
}

// States returns the states with this name; for "", all states except Discarded.
func (s SessionStatus) States() []domain.State {
	return StatesWhere(func(state domain.State) bool {
		if s == "" {
			return state != domain.Discarded
		}
		return statusNames[state] == string(s)
	})
}

// StatesWhere lists the states for which want returns true, sorted.
func StatesWhere(want func(domain.State) bool) []domain.State {
	var list []domain.State
	for state := range statusNames {
		if want(state) {
			list = append(list, state)
		}
	}
	slices.Sort(list)
	return list
}

// States lists all states of a turn, sorted.
func States() []domain.State { return StatesWhere(func(domain.State) bool { return true }) }

// A PermissionMode says what an agent may do without asking.
type PermissionMode string

// Accepted implements schema.Enum.
func (PermissionMode) Accepted() []string {
	return []string{"default", "acceptEdits", "bypassPermissions", "plan"}
}
