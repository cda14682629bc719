package protocol

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

// TaskStateOf is a state in the words of AIWG; "" where it shows none.
func TaskStateOf(s domain.State) string { return stateNames[s].task }

// StatusOf is a state in the words of HumanLayer.
func StatusOf(s domain.State) string { return stateNames[s].session }

// ExecutorStatusOf is a state in the words of the executor catalog, which has
// some only for what has ended.
func ExecutorStatusOf(s domain.State) string { return stateNames[s].executor }

// A TaskState is AIWG's word for a state.
type TaskState string

// Accepted implements schema.Enum.
func (TaskState) Accepted() []string {
	return []string{"queued", "running", "completed", "failed", "cancelled"}
}

// States are those that the name covers; no name: all that tasks can have.
func (s TaskState) States() []domain.State {
	return StatesWhere(func(state domain.State) bool {
		name := stateNames[state].task
		return name != "" && (s == "" || name == string(s))
	})
}

// A SessionStatus is HumanLayer's word for a state.
type SessionStatus string

// Accepted implements schema.Enum.
func (SessionStatus) Accepted() []string {
	return []string{"draft", "starting", "running", "waiting_input", "interrupting", "interrupted", "completed", "failed", "discarded"}
}

// States are those that the name covers; no name: all but what was thrown away.
func (s SessionStatus) States() []domain.State {
	return StatesWhere(func(state domain.State) bool {
		if s == "" {
			return state != domain.Discarded
		}
		return stateNames[state].session == string(s)
	})
}

// StatesWhere lists the states for which want is true, in order.
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
