package humanlayer

import "github.com/duet-rpc/duet-rpc/internal/domain"

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
	return domain.StatesWhere(func(state domain.State) bool {
		if s == "" {
			return state != domain.Discarded
		}
		return statusNames[state] == string(s)
	})
}
