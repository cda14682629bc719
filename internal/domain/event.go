package domain

import "time"

// An Event is an entry of the log: something that happened, in the order in
// which it was kept.
type Event struct {
	Seq     int64 // counts from 1 without a gap; 0: not kept, such as a terminal's output
	Time    time.Time
	Thread  int64  // or 0
	Run     int64  // or 0
	Ref     RunRef // how clients name the run; zero where there is none, and in deltas as they are kept
	Payload Payload
}

// MaxEventText is how much of a text an event carries, in bytes; what the event is
// about has all of it.
const MaxEventText = 128 << 10

// A RunRef is how clients name a run.
type RunRef struct {
	SessionID string
	RunID     string
	Task      int64
}

// Ref is how clients name the run.
func (r Run) Ref() RunRef { return RunRef{r.SessionID, r.RunID, r.Task} }

// Event is an event of the run that is to be appended to the log.
func (r Run) Event(p Payload) Event {
	return Event{Thread: r.Thread, Run: r.ID, Ref: r.Ref(), Payload: p}
}

// Unreadable reports whether what the event has to tell could not be read. The
// rest of it may be wrong, too.
func (e Event) Unreadable() bool {
	_, unreadable := e.Payload.(Unreadable)
	return unreadable
}

// Erased reports whether the event was of a conversation that was deleted: nothing is
// left of it but its number.
func (e Event) Erased() bool {
	_, erased := e.Payload.(Erased)
	return erased
}

// A Payload is what an event has to tell: a value of one of the types of
// payload.go, which is never changed.
type Payload interface {
	Kind() EventKind
	// Size is about how many bytes the payload's texts are.
	Size() int
}

// An EventKind names a type of payload. It is no client's name for it.
type EventKind string

// Kinds of events.
const (
	EventRunState          EventKind = "run.state"
	EventMessage           EventKind = "item.message"
	EventToolCall          EventKind = "item.tool"
	EventDelta             EventKind = "delta.message"
	EventThoughtDelta      EventKind = "delta.thought"
	EventApprovalRequested EventKind = "approval.requested"
	EventApprovalResolved  EventKind = "approval.resolved"
	EventSettings          EventKind = "thread.settings"
	EventNativeSession     EventKind = "thread.native"
	EventAgentMode         EventKind = "thread.agent_mode"
	EventAgentSession      EventKind = "thread.agent_session"
	EventPlan              EventKind = "run.plan"
	EventUsage             EventKind = "run.usage"
	EventFileChange        EventKind = "run.file"
	EventProgress          EventKind = "run.progress"
	EventAgentError        EventKind = "run.error"
	EventAgentUpdate       EventKind = "run.update"
	EventAgentSilent       EventKind = "run.silent"
	EventTerminalOutput    EventKind = "terminal.output"
	EventTerminalExit      EventKind = "terminal.exit"
	EventTerminalLagged    EventKind = "terminal.lagged"
	EventSecretRequested   EventKind = "secret.requested"
	EventBuild             EventKind = "build.progress"
	EventLagged            EventKind = "log.lagged"
	EventLogDamaged        EventKind = "log.damaged"
	EventUnreadable        EventKind = "log.unreadable"
	EventThreadDeleted     EventKind = "thread.deleted"
	EventErased            EventKind = "log.erased"
)
