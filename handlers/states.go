package handlers

import (
	"slices"

	"github.com/duet-rpc/duet-rpc/internal/domain"
)

// stateNames is what a state is called in each dialect. An empty name means
// that the dialect does not show it.
var stateNames = map[domain.State]struct{ task, session, executor string }{
	domain.Draft:        {"", "draft", ""},
	domain.Queued:       {"queued", "starting", ""},
	domain.Starting:     {"running", "starting", ""},
	domain.Running:      {"running", "running", ""},
	domain.WaitingInput: {"running", "waiting_input", ""},
	domain.Interrupting: {"running", "interrupting", ""},
	domain.Completed:    {"completed", "completed", "completed"},
	domain.Failed:       {"failed", "failed", "failed"},
	domain.TimedOut:     {"failed", "failed", "failed"},
	domain.Cancelled:    {"cancelled", "interrupted", "cancelled"},
	domain.Interrupted:  {"cancelled", "interrupted", "cancelled"},
	domain.Discarded:    {"", "discarded", ""},
}

// A taskState is a state as seed 000 calls it.
type taskState string

// Accepted implements schema.Enum.
func (taskState) Accepted() []string {
	return []string{"queued", "running", "completed", "failed", "cancelled"}
}

// states are those that the name covers; no name: all that tasks can have.
func (s taskState) states() []domain.State {
	return chosen(func(state domain.State) bool {
		name := stateNames[state].task
		return name != "" && (s == "" || name == string(s))
	})
}

// A sessionStatus is a state as seed 001 calls it.
type sessionStatus string

// Accepted implements schema.Enum.
func (sessionStatus) Accepted() []string {
	return []string{"draft", "starting", "running", "waiting_input", "interrupting", "interrupted", "completed", "failed", "discarded"}
}

// states are those that the name covers; no name: all but what was thrown away.
func (s sessionStatus) states() []domain.State {
	return chosen(func(state domain.State) bool {
		if s == "" {
			return state != domain.Discarded
		}
		return stateNames[state].session == string(s)
	})
}

// chosen lists the states that want likes, in order.
func chosen(want func(domain.State) bool) []domain.State {
	var list []domain.State
	for state := range stateNames {
		if want(state) {
			list = append(list, state)
		}
	}
	slices.Sort(list)
	return list
}

// A permissionMode says what an agent may do without asking.
type permissionMode string

// Accepted implements schema.Enum.
func (permissionMode) Accepted() []string {
	return []string{"default", "acceptEdits", "bypassPermissions", "plan"}
}
