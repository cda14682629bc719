package handlers

import (
	"slices"

	"github.com/duet-rpc/duet-rpc/internal/hub"
)

// The states of a run, by their names in the store.
const (
	draft        hub.State = "draft"
	queued       hub.State = "queued"
	starting     hub.State = "starting"
	running      hub.State = "running"
	waitingInput hub.State = "waiting_input"
	interrupting hub.State = "interrupting"
	completed    hub.State = "completed"
	failed       hub.State = "failed"
	timedOut     hub.State = "timed_out"
	cancelled    hub.State = "cancelled"
	interrupted  hub.State = "interrupted"
	discarded    hub.State = "discarded"
)

// stateNames is what a state is called in each dialect. An empty name means
// that the dialect does not show it.
var stateNames = map[hub.State]struct{ task, session, executor string }{
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
func (s taskState) states() []hub.State {
	return chosen(func(state hub.State) bool {
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
func (s sessionStatus) states() []hub.State {
	return chosen(func(state hub.State) bool {
		if s == "" {
			return state != discarded
		}
		return stateNames[state].session == string(s)
	})
}

// chosen lists the states that want likes, in order.
func chosen(want func(hub.State) bool) []hub.State {
	var list []hub.State
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
