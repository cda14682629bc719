package protocol

import (
	"slices"

	"github.com/duet-rpc/duet-rpc/internal/domain"
)

// stateNames has the name of each state in each dialect. A state with an empty name is hidden in
// that dialect.
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

// TaskStateOf returns AIWG's name of a state, or "" if AIWG's clients do not see it.
func TaskStateOf(s domain.State) string { return stateNames[s].task }

// StatusOf returns HumanLayer's name of a state.
func StatusOf(s domain.State) string { return stateNames[s].session }

// ExecutorStatusOf returns the executor catalog's name of a state. Only final states have one.
func ExecutorStatusOf(s domain.State) string { return stateNames[s].executor }

// A TaskState is AIWG's name of a state.
type TaskState string

// Accepted implements schema.Enum.
func (TaskState) Accepted() []string {
	return []string{"queued", "running", "completed", "failed", "cancelled"}
}

// States returns the states with this name; for "", all states of tasks.
func (s TaskState) States() []domain.State {
	return StatesWhere(func(state domain.State) bool {
		name := stateNames[state].task
		return name != "" && (s == "" || name == string(s))
	})
}

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
		return stateNames[state].session == string(s)
	})
}

// StatesWhere lists the states for which want returns true, sorted.
func StatesWhere(want func(domain.State) bool) []domain.State {
	var list []domain.State
	for state := range stateNames {
		if want(state) {
			list = append(list, state)
		}
	}
	slices.Sort(list)
	return list
}

// A PermissionMode says what an agent may do without asking.
type PermissionMode string

// Accepted implements schema.Enum.
func (PermissionMode) Accepted() []string {
	return []string{"default", "acceptEdits", "bypassPermissions", "plan"}
}
