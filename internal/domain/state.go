package domain

import "slices"

// A State is the state of a run.
type State string

// The states of a run.
const (
	Draft        State = "draft"
	Queued       State = "queued"
	Starting     State = "starting"
	Running      State = "running"
	WaitingInput State = "waiting_input"
	Interrupting State = "interrupting"
	Completed    State = "completed"
	Failed       State = "failed"
	TimedOut     State = "timed_out"
	Cancelled    State = "cancelled"
	Interrupted  State = "interrupted"
	Discarded    State = "discarded"
)

// Ended reports whether the state is final.
func (s State) Ended() bool {
	switch s {
	case Completed, Failed, TimedOut, Cancelled, Interrupted, Discarded:
		return true
	}
	return false
}

// Active reports whether a run in this state has an agent.
func (s State) Active() bool {
	switch s {
	case Starting, Running, WaitingInput, Interrupting:
		return true
	}
	return false
}

// New is what a run that is no draft is before it is queued, in the same
// transaction: nobody ever sees it.
const New State = ""

// transitions are the changes of state that there are.
var transitions = map[State][]State{
	New:          {Queued, Completed, Running}, // Completed: it was begun and ended elsewhere; Running: a question, which has no agent
	Draft:        {Queued, Discarded},
	Queued:       {Starting, Cancelled},
	Starting:     {Running, Interrupting, Interrupted, Failed},
	Running:      {WaitingInput, Interrupting, Completed, Failed, Interrupted},
	WaitingInput: {Running, Interrupting, Completed, Failed, Interrupted},
	Interrupting: {Interrupted, TimedOut, Failed},
}

// CanBecome reports whether a run may go from this state to another one.
func (s State) CanBecome(to State) bool { return slices.Contains(transitions[s], to) }

// HoldsSlot reports whether a run in this state counts among those that run at
// once. One that waits for a human does not: it takes its slot back unasked.
func (s State) HoldsSlot() bool { return s.Active() && s != WaitingInput }
