package domain

import (
	"encoding/json"
	"time"
)

// An Event is an entry of the log. The log has events in the order in which they were stored.
type Event struct {
	Seq     int64 // counts from 1 without a gap; 0: not kept, such as a terminal's output
	Time    time.Time
	Session int64   // or 0
	Turn    int64   // or 0
	Ref     TurnRef // the turn for clients; zero without a turn, and in stored deltas
	Payload Payload
}

// MaxEventText limits a text in an event, in bytes. The item or approval of the event has the whole
// text.
const MaxEventText = 128 << 10

// A TurnRef has the names of a turn for clients.
type TurnRef struct {
	HumanLayerSession string `json:"session_id"`
	HumanLayerRun     string `json:"run_id"`
	Task              int64  `json:"task"`
	Number            int64  `json:"number,omitempty"` // in its session
}

// Ref returns the names of the turn for clients.
func (r Turn) Ref() TurnRef { return TurnRef{r.HumanLayerSession, r.HumanLayerRun, r.Task, r.Number} }

// Event returns an event of the turn, to append to the log.
func (r Turn) Event(p Payload) Event {
	return Event{Session: r.Session, Turn: r.ID, Ref: r.Ref(), Payload: p}
}

// TurnName returns the number of the event's turn, such as 12.3, or "".
func (e Event) TurnName() string {
	if e.Ref.Number == 0 {
		return ""
	}
	return Turn{Session: e.Session, Number: e.Ref.Number}.Name()
}

// Unreadable reports whether the payload could not be read. The other fields may be wrong, too.
func (e Event) Unreadable() bool {
	_, unreadable := e.Payload.(Unreadable)
	return unreadable
}

// Erased reports whether the event belonged to a deleted session. Only its number is left.
func (e Event) Erased() bool {
	_, erased := e.Payload.(Erased)
	return erased
}

// A Payload is the content of an event: an immutable value of a type of this package.
type Payload interface {
	Kind() EventKind
	// Size is the approximate length of the payload's texts, in bytes.
	Size() int
}

// An EventKind identifies a type of payload. Clients use other names.
type EventKind string

// Kinds of events.
const (
	EventTurnState         EventKind = "turn.state"
	EventMessage           EventKind = "item.message"
	EventToolCall          EventKind = "item.tool"
	EventDelta             EventKind = "text.delta"
	EventThoughtDelta      EventKind = "thought.delta"
	EventApprovalRequested EventKind = "approval.opened"
	EventApprovalResolved  EventKind = "approval.closed"
	EventSettings          EventKind = "session.settings"
	EventNativeSession     EventKind = "session.native"
	EventAgentMode         EventKind = "session.agent_mode"
	EventAgentSession      EventKind = "session.agent_session"
	EventPlan              EventKind = "turn.plan"
	EventUsage             EventKind = "turn.usage"
	EventFileChange        EventKind = "change.made"
	EventProgress          EventKind = "turn.progress"
	EventAgentError        EventKind = "agent.error"
	EventAgentUpdate       EventKind = "agent.update"
	EventAgentSilent       EventKind = "agent.silent"
	EventTerminalOutput    EventKind = "terminal.output"
	EventTerminalExit      EventKind = "terminal.exit"
	EventTerminalLagged    EventKind = "terminal.lagged"
	EventSecretRequested   EventKind = "secret.requested"
	EventBuild             EventKind = "build.progress"
	EventLagged            EventKind = "log.lagged"
	EventLogDamaged        EventKind = "log.damaged"
	EventUnreadable        EventKind = "log.unreadable"
	EventSessionDeleted    EventKind = "session.deleted"
	EventErased            EventKind = "log.erased"
)

// TurnStateChanged is a turn's new state.
type TurnStateChanged struct {
	SessionUUID             string       `json:"session"`
	From                    State        `json:"from,omitempty"` // New for a new turn
	To                      State        `json:"to"`
	ParentHumanLayerSession string       `json:"parent_session,omitempty"`
	Title                   string       `json:"title,omitempty"`
	Agent                   string       `json:"agent,omitempty"`
	Reason                  string       `json:"reason,omitempty"` // user_cancelled, timeout, approval, ...
	Error                   string       `json:"error,omitempty"`  // of a turn that has ended or is ending
	ErrorCode               string       `json:"error_code,omitempty"`
	StopReason              string       `json:"stop_reason,omitempty"`
	SignIn                  []AuthMethod `json:"sign_in,omitempty"` // see Run
}

// MessageDelta is a piece of a message, or of a thought, that is being written.
type MessageDelta struct {
	Key      string // of the message
	ParentID string // as of MessageAdded
	Text     string
	Thought  bool
	Length   int // of the message with this piece, in UTF-16 code units; 0: not known

	Meta json.RawMessage // the agent's own, an object; nil: none
}

// MessageAdded is a complete message, thought or note of the system.
type MessageAdded struct {
	NativeSession string  `json:"native,omitempty"`
	Type          string  `json:"type"` // message, thinking or system: the kind of its item
	Key           string  `json:"key"`
	ParentID      string  `json:"parent,omitempty"` // the tool call of the speaking sub-agent, or ""
	Role          string  `json:"role,omitempty"`
	Text          string  `json:"text,omitempty"`
	Subtype       string  `json:"subtype,omitempty"`
	Truncated     bool    `json:"truncated,omitempty"` // the item has all of it
	Blocks        []Block `json:"blocks,omitempty"`    // in addition to the text

	Meta json.RawMessage `json:"_meta,omitempty"` // as of MessageContent
}

// ToolCallChanged is a tool call as it is now.
type ToolCallChanged struct {
	NativeSession string          `json:"native,omitempty"`
	ID            string          `json:"id"` // the agent's
	Name          string          `json:"name,omitempty"`
	Title         string          `json:"title,omitempty"`
	ToolKind      string          `json:"kind,omitempty"`
	Status        string          `json:"status,omitempty"`
	ParentID      string          `json:"parent,omitempty"`
	Input         json.RawMessage `json:"input,omitempty"`   // absent if unchanged since the last event
	Details       *ToolDetails    `json:"details,omitempty"` // nil if unchanged since the last event
	Ended         bool            `json:"ended,omitempty"`   // with the result
	Result        string          `json:"result,omitempty"`
	Truncated     bool            `json:"truncated,omitempty"` // the item has all of it
}

// ApprovalRequested is a question to a person.
type ApprovalRequested struct {
	ApprovalID    string          `json:"id"`
	CallID        string          `json:"call"`
	ToolUseID     string          `json:"tool_use,omitempty"`
	ParentID      string          `json:"parent,omitempty"` // as of Approval
	Type          string          `json:"type"`             // FunctionCall or HumanContact
	Tool          string          `json:"tool,omitempty"`
	Input         json.RawMessage `json:"input,omitempty"` // as of Approval
	ToolKind      string          `json:"tool_kind,omitempty"`
	InputEditable bool            `json:"input_editable,omitempty"`
	Ambiguity     string          `json:"ambiguity,omitempty"` // why programs may read the input differently
	Title         string          `json:"title,omitempty"`
	Subject       string          `json:"subject,omitempty"`
	Options       []Option        `json:"options,omitzero"`
	Paths         []string        `json:"paths,omitempty"`
	Diffs         []Diff          `json:"diffs,omitzero"`
	Details       string          `json:"details,omitempty"` // as of Approval
	Plan          string          `json:"plan,omitempty"`    // as of Approval
	TakesComment  bool            `json:"takes_comment,omitempty"`
	Rule          *RulePreview    `json:"rule,omitempty"` // nil: no rule can be made of it
	Stale         bool            `json:"stale,omitempty"`
	Reopens       string          `json:"reopens,omitempty"`
	Reopened      string          `json:"reopened,omitempty"`
	Elicitation   Elicitation     `json:"elicitation,omitzero"`
	Replayed      bool            `json:"replayed,omitempty"`  // asked before the subscription began, and pending
	Truncated     bool            `json:"truncated,omitempty"` // the approval has all of it
}

// ApprovalResolved is the outcome of a question.
type ApprovalResolved struct {
	ApprovalID  string `json:"id"`
	CallID      string `json:"call"`
	ToolUseID   string `json:"tool_use,omitempty"`
	Type        string `json:"type"`
	Status      string `json:"status"` // as of Approval
	Response    string `json:"response,omitempty"`
	Comment     string `json:"comment,omitempty"`
	Option      string `json:"option,omitempty"`
	DecidedBy   string `json:"decided_by,omitempty"`
	DecidedIn   string `json:"decided_in,omitempty"` // the client in which the user decided, for people
	Title       string `json:"title,omitempty"`
	Tool        string `json:"tool,omitempty"`
	InputEdited bool   `json:"input_edited,omitempty"`
	Explanation string `json:"explanation,omitempty"` // as of Approval
}

// NativeSessionChanged is the agent's own session of a session.
type NativeSessionChanged struct {
	NativeSession string `json:"native"`
	Replaced      bool   `json:"replaced,omitempty"` // the agent lost the session before
	Forked        bool   `json:"forked,omitempty"`   // the agent forked its own session of the original
}

// AgentModeChanged is the agent's current mode.
type AgentModeChanged struct {
	Mode    string   `json:"mode"`
	Modes   []string `json:"modes,omitempty"`   // all IDs; nil if not reported again
	Choices []Choice `json:"choices,omitempty"` // the same with names; nil if there are none
}

// AgentSessionChanged has the changed parts of an agent's session, except modes; see
// [AgentModeChanged].
type AgentSessionChanged struct {
	AgentSession
	Truncated bool `json:"truncated,omitempty"` // long parts were left out; the session has them
}

// PlanChanged is an agent's plan, whole.
type PlanChanged struct {
	Entries []PlanEntry `json:"entries"`
}

// UsageReported is the usage of a turn, as its agent reports it.
type UsageReported struct {
	InputTokens      int64           `json:"input,omitempty"`
	OutputTokens     int64           `json:"output,omitempty"`
	CacheReadTokens  int64           `json:"cache_read,omitempty"`
	CacheWriteTokens int64           `json:"cache_write,omitempty"`
	ContextUsed      int64           `json:"context_used,omitempty"`
	ContextSize      int64           `json:"context_size,omitempty"`
	CostUSD          float64         `json:"cost_usd,omitempty"`
	Meta             json.RawMessage `json:"_meta,omitempty"` // the agent's own, an object; nil: none
}

// FileChanged is a file that a turn changed.
type FileChanged struct {
	Path      string `json:"path"`
	Diff      string `json:"diff,omitempty"`  // unified
	Added     int    `json:"added,omitempty"` // lines
	Removed   int    `json:"removed,omitempty"`
	Binary    bool   `json:"binary,omitempty"`
	Truncated bool   `json:"truncated,omitempty"`
}

// ProgressReported is the progress of a task, in the executor's JSON.
type ProgressReported struct {
	Report json.RawMessage `json:"report,omitempty"` // an object, or absent
}

// AgentErrorReported is an error that does not end the turn, in the executor's JSON.
type AgentErrorReported struct {
	Report json.RawMessage `json:"report,omitempty"` // an object, or absent
}

// AgentUpdated is an agent's update of an unknown kind, unchanged.
type AgentUpdated struct {
	Update json.RawMessage `json:"update,omitempty"`
}

// AgentSilent says that a turn's agent gives no sign of life, or that it works again. An agent is
// not silent while its turn waits for a person. The silence ends with the turn.
type AgentSilent struct {
	Since  time.Time `json:"since"`             // of its last sign of life
	Note   string    `json:"note,omitempty"`    // its complaints since then; a few lines, or ""
	ToolID string    `json:"tool_id,omitempty"` // the open tool call, or ""
	Tool   string    `json:"tool,omitempty"`    // its title
	Ended  bool      `json:"ended,omitempty"`   // the agent works again
}

// TerminalPrinted is output of a terminal. It is not kept.
type TerminalPrinted struct {
	TerminalID string
	TaskID     string // whose agent runs it, or ""
	Data       string
	Encoding   string // of Data: utf-8 or base64
}

// TerminalExited says that a terminal's program has ended.
type TerminalExited struct {
	TerminalID string `json:"terminal"`
	TaskID     string `json:"task,omitempty"` // whose agent ran it, or ""
	ExitCode   int    `json:"exit_code"`
	Signal     string `json:"signal,omitempty"`
}

// TerminalLagged says that output of a terminal was left out. It is not kept.
type TerminalLagged struct {
	TerminalID string
	Dropped    int // bytes
}

// SecretRequested asks clients for a key. It is not kept.
type SecretRequested struct {
	RequestID string
	Service   string
	Agent     string
}

// Lagged names the events that a subscriber did not get. It is not kept.
type Lagged struct{ From, To int64 }

// LogDamaged names the events that cannot be read. It is not kept.
type LogDamaged struct {
	From, To int64 // 0: it is not the log
	Message  string
}

// Unreadable replaces a payload that cannot be read.
type Unreadable struct{}

// SessionDeleted says that turns of a session were deleted with everything that only they had. The
// event has the session, and no turn.
type SessionDeleted struct {
	SessionUUID string    `json:"session"`
	Turns       []TurnRef `json:"turns"`          // the deleted turns
	Kept        int       `json:"kept,omitempty"` // how many stay because other sessions were forked from them
}

// Erased replaces the payload of a deleted turn. No client gets it; the log keeps the number, so
// that it has no gaps.
type Erased struct{}

func (SessionDeleted) Kind() EventKind   { return EventSessionDeleted }
func (Erased) Kind() EventKind           { return EventErased }
func (TurnStateChanged) Kind() EventKind { return EventTurnState }

func (d MessageDelta) Kind() EventKind {
	if d.Thought {
		return EventThoughtDelta
	}
	return EventDelta
}

func (MessageAdded) Kind() EventKind         { return EventMessage }
func (ToolCallChanged) Kind() EventKind      { return EventToolCall }
func (ApprovalRequested) Kind() EventKind    { return EventApprovalRequested }
func (ApprovalResolved) Kind() EventKind     { return EventApprovalResolved }
func (NativeSessionChanged) Kind() EventKind { return EventNativeSession }
func (AgentModeChanged) Kind() EventKind     { return EventAgentMode }
func (AgentSessionChanged) Kind() EventKind  { return EventAgentSession }
func (PlanChanged) Kind() EventKind          { return EventPlan }
func (UsageReported) Kind() EventKind        { return EventUsage }
func (FileChanged) Kind() EventKind          { return EventFileChange }
func (ProgressReported) Kind() EventKind     { return EventProgress }
func (AgentErrorReported) Kind() EventKind   { return EventAgentError }
func (AgentUpdated) Kind() EventKind         { return EventAgentUpdate }
func (AgentSilent) Kind() EventKind          { return EventAgentSilent }
func (TerminalPrinted) Kind() EventKind      { return EventTerminalOutput }
func (TerminalExited) Kind() EventKind       { return EventTerminalExit }
func (TerminalLagged) Kind() EventKind       { return EventTerminalLagged }
func (SecretRequested) Kind() EventKind      { return EventSecretRequested }
func (Lagged) Kind() EventKind               { return EventLagged }
func (LogDamaged) Kind() EventKind           { return EventLogDamaged }
func (Unreadable) Kind() EventKind           { return EventUnreadable }
