package handlers

import (
	"slices"

	"github.com/duet-rpc/duet-rpc/internal/domain"
)

// The states of a run, by their names in the store.
const (
	draft        domain.State = "draft"
	queued       domain.State = "queued"
	starting     domain.State = "starting"
	running      domain.State = "running"
	waitingInput domain.State = "waiting_input"
	interrupting domain.State = "interrupting"
	completed    domain.State = "completed"
	failed       domain.State = "failed"
	timedOut     domain.State = "timed_out"
	cancelled    domain.State = "cancelled"
	interrupted  domain.State = "interrupted"
	discarded    domain.State = "discarded"
)

// stateNames is what a state is called in each dialect. An empty name means
// that the dialect does not show it.
var stateNames = map[domain.State]struct{ task, session, executor string }{
	draft:        {"", "draft", ""},
	queued:       {"queued", "starting", ""},
	starting:     {"running", "starting", ""},
	running:      {"running", "running", ""},
	waitingInput: {"running", "waiting_input", ""},
	interrupting: {"running", "interrupting", ""},
	completed:    {"completed", "completed", "completed"},
	failed:       {"failed", "failed", "failed"},
	timedOut:     {"failed", "failed", "failed"},
	cancelled:    {"cancelled", "interrupted", "cancelled"},
	interrupted:  {"cancelled", "interrupted", "cancelled"},
	discarded:    {"", "discarded", ""},
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
			return state != discarded
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
