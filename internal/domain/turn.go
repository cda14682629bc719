// Package domain has the values of the whole program: sessions and their turns,
// items, approvals, events, and the table of turn states. It imports nothing of this module.
//
// Tags name the column of a field (db) and its member in JSON (json), both in the database and,
// where clients see the value itself, on the wire. Raw JSON in a value is third-party text,
// such as a tool's input; it is kept as it came.
package domain

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
)

// A Turn is one prompt and its execution, which dialects call session, run or task. Each of its
// ids finds it.
type Turn struct {
	ID                int64           `db:"id,key"`
	UUID              string          `db:"uuid,fixed"`               // UUIDv7, ours
	Number            int64           `db:"number,fixed"`             // in its session, from 1: the 3 of 12.3; never given again
	Task              int64           `db:"task,fixed"`               // the number in task-0001
	HumanLayerSession string          `db:"humanlayer_session,fixed"` // a UUID, HumanLayer's session_id
	HumanLayerRun     string          `db:"humanlayer_run,fixed"`     // a UUID, HumanLayer's run_id
	CallerID          string          `db:"caller_id,fixed"`          // the caller's own id, or ""
	Session           int64           `db:"session,fixed"`
	Place             int64           `db:"place,fixed"`  // orders the turns of a session: the ID, unless queued turns were reordered
	Parent            int64           `db:"parent,fixed"` // the turn before, or 0
	Prompt            string          `db:"prompt,fixed"`
	Content           []Block         `db:"content,fixed"` // in addition to the prompt's text
	Title             string          `db:"title"`
	Agent             string          `db:"agent"`
	Source            string          `db:"source"` // one of the Source constants
	State             State           `db:"state"`
	Priority          int             `db:"priority"`    // higher first
	Mode              string          `db:"mode"`        // requested: a permission mode, or a mode of the agent
	AgentMode         string          `db:"agent_mode"`  // the agent's last reported mode, or ""
	Model             string          `db:"agent_model"` // as the agent reports it, or ""
	Tools             []string        `db:"tools"`       // allowed; empty: all
	Timeout           time.Duration   `db:"timeout"`     // 0: the configured one
	Quiet             bool            `db:"quiet"`       // no deltas are wanted
	Created           time.Time       `db:"created"`
	Started           time.Time       `db:"started"` // zero before
	Ended             time.Time       `db:"ended"`   // zero before
	Active            time.Time       `db:"active"`  // the last activity
	Error             string          `db:"error"`
	ErrorCode         string          `db:"error_code"` // in capitals: ORPHANED, TIMEOUT, AGENT_EXITED, ...
	Stop              string          `db:"stop"`       // the agent's stop reason
	SignIn            []AuthMethod    `db:"sign_in"`    // ways to sign in, if it failed for lack of that
	Result            string          `db:"result"`     // the last message of the agent
	Messages          int             `db:"messages"`   // how many the agent sent
	Tokens            Tokens          `db:"tokens"`
	Progress          json.RawMessage `db:"progress"` // the executor's last progress report
	Metadata          json.RawMessage `db:"metadata"` // the caller's JSON object, with the agent's plan added

	// ClockOff is by how much the time from Started to Ended, or until now, is longer than the time in
	// which its agent could work: the clock was set, the machine slept, or the process had died. Time in
	// which the turn waited for a person has no part in it.
	ClockOff time.Duration `db:"clock_off"`

	// Restricted says that the client did not trust the workspace: the project's file has no
	// effect. See package clientenv.
	Restricted bool `db:"restricted"`
}

// Name returns the turn's number for people, such as 12.3.
func (r Turn) Name() string { return fmt.Sprintf("%d.%d", r.Session, r.Number) }

// A Label names a turn in a sentence for people: by its number, and for AIWG's and HumanLayer's clients as
// task-0001.
type Label struct {
	session, number, task int64
}

// Label returns the names of the turn for people.
func (r Turn) Label() Label { return Label{r.Session, r.Number, r.Task} }

func (l Label) String() string { return fmt.Sprintf("%d.%d", l.session, l.number) }

// Task returns AIWG's name of the turn.
func (l Label) Task() string { return TaskName(l.task) }

// CodeStoreFull is the ErrorCode of a turn that a full disk ended: its open items and questions
// were not closed.
const CodeStoreFull = "STORE_FULL"

// Tokens is the usage of a turn.
type Tokens struct {
	Input       int64   `json:"input,omitempty"`
	Output      int64   `json:"output,omitempty"`
	CacheRead   int64   `json:"cache_read,omitempty"`
	CacheWrite  int64   `json:"cache_write,omitempty"`
	ContextUsed int64   `json:"context_used,omitempty"`
	ContextSize int64   `json:"context_size,omitempty"`
	CostUSD     float64 `json:"cost_usd,omitempty"`
}

// A TurnInSession is a turn with its session.
type TurnInSession struct {
	Turn
	Session                 Session `db:",inline"`
	ParentHumanLayerSession string  `db:"parent_session,read"` // SessionID of the turn before, or ""
	FirstWords              string  `db:"first_words,read"`    // of the session's first prompt, at most 400 characters
}

// A TurnFilter chooses turns. The zero value means all.
type TurnFilter struct {
	States   []State
	Agent    string
	Source   string
	Session  int64
	Archived *bool // of the session
	Leaves   bool  // only the last turn of each session
	Before   int64 // only turns with a smaller row: for paging
	Limit    int   // at most that many; 0: 1,000
}

// A TurnHead is a turn without its texts.
type TurnHead struct {
	ID                int64  `db:"id"`
	Session           int64  `db:"session"`
	Number            int64  `db:"number"`
	HumanLayerSession string `db:"humanlayer_session"`
	State             State  `db:"state"`
	ErrorCode         string `db:"error_code"`
}

// TaskName is AIWG's name of a turn, such as task-0001.
func TaskName(n int64) string { return fmt.Sprintf("task-%04d", n) }

// IsReserved reports whether an id has a form that the daemon gives out, as a caller's own id must not: a
// number such as 12 or 12.3, AIWG's name of a turn, or [LastTurn].
func IsReserved(id string) bool {
	if _, _, isNumber := ParseNumber(id); isNumber || id == LastTurn {
		return true
	}
	digits, ok := strings.CutPrefix(id, "task-")
	return ok && len(digits) >= 4 && strings.Trim(digits, "0123456789") == ""
}

// Counts is the number of turns in each state.
type Counts map[State]int

// Values of Turn.Source.
const (
	SourceTask     = "task"     // task.submit
	SourceChat     = "chat"     // chat.send
	SourceSession  = "session"  // launchSession, continueSession
	SourceExecute  = "execute"  // execute_prompt
	SourceDecision = "decision" // a stale approval was approved
	SourceAdopted  = "adopted"  // session.adopt: started without Duet
	SourceTrigger  = "trigger"  // a trigger of the configuration
	SourceGate     = "gate"     // the failures of gates
	SourceAgent    = "agent"    // an agent-initiated turn: no prompt

	// Questions of clients without an agent: askUser, requestPermission.
	SourceQuestion     = "question"      // the question is withdrawn when its caller disconnects
	SourceKeptQuestion = "kept_question" // the question stays when its caller disconnects
)

// IsWritten reports whether a client wrote the prompt, so that clients may edit it while the turn is
// queued.
func (r Turn) IsWritten() bool {
	switch r.Source {
	case SourceTask, SourceChat, SourceSession, SourceExecute:
		return true
	}
	return false
}

// IsQuestion reports whether a turn is a client's question, without an agent.
func (r Turn) IsQuestion() bool { return r.Source == SourceQuestion || r.Source == SourceKeptQuestion }

// A State is the state of a turn.
type State string

// The states of a turn.
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

// StatesWhere lists the states for which want returns true, sorted by name.
func StatesWhere(want func(State) bool) []State {
	var list []State
	for _, s := range []State{
		Cancelled, Completed, Discarded, Draft, Failed, Interrupted, Interrupting, Queued, Running, Starting, TimedOut, WaitingInput,
	} {
		if want(s) {
			list = append(list, s)
		}
	}
	return list
}

// States lists all states, sorted by name.
func States() []State { return StatesWhere(func(State) bool { return true }) }

// Listed lists the states of the turns that lists show without being asked for others.
func Listed() []State { return StatesWhere(func(s State) bool { return s != Discarded }) }

// Accepted implements schema.Enum.
func (State) Accepted() (names []string) {
	for _, s := range States() {
		names = append(names, string(s))
	}
	return names
}

// Ended reports whether the state is final.
func (s State) Ended() bool {
	switch s {
	case Completed, Failed, TimedOut, Cancelled, Interrupted, Discarded:
		return true
	}
	return false
}

// Words returns the state for people: a turn that a user or the hub ended is interrupted, whether
// it had started or not.
func (s State) Words() string {
	switch s {
	case WaitingInput:
		return "waiting for you"
	case Cancelled:
		return string(Interrupted)
	case TimedOut:
		return "timed out"
	}
	return string(s)
}

// Active reports whether a turn in this state has an agent.
func (s State) Active() bool {
	switch s {
	case Starting, Running, WaitingInput, Interrupting:
		return true
	}
	return false
}

// New is the state of a turn before it is queued in the same transaction. It is never visible.
const New State = ""

// transitions are the allowed changes of state.
var transitions = map[State][]State{
	New:          {Queued, Completed, Running}, // Completed: an imported turn; Running: a question without an agent
	Draft:        {Queued, Discarded},
	Queued:       {Starting, Cancelled},
	Starting:     {Running, Interrupting, Interrupted, Failed},
	Running:      {WaitingInput, Interrupting, Completed, Failed, Interrupted},
	WaitingInput: {Running, Interrupting, Completed, Failed, Interrupted},
	Interrupting: {Interrupted, TimedOut, Failed},
}

// CanBecome reports whether a turn may go from this state to another one.
func (s State) CanBecome(to State) bool { return slices.Contains(transitions[s], to) }

// HoldsSlot reports whether a turn in this state counts against the limit of concurrent turns. A turn
// that waits for a person does not, and continues without waiting for a slot.
func (s State) HoldsSlot() bool { return s.Active() && s != WaitingInput }

// LastTurn is the alias of the newest turn, drafts aside.
const LastTurn = "last"

// A prompt of the hub that asks an agent to continue begins with goOn, and repeats the request after
// theRequest.
const (
	goOn       = "Continue where you left off. "
	theRequest = "\n\nThe request was:\n\n"
)

// GoOnPrompt asks an agent to continue an interrupted request. why gives the reason and the
// instruction. The request is repeated because the agent's session may have lost the turn. The demo
// agent looks for the first word and for the line above the request.
func GoOnPrompt(why, request string) string { return goOn + why + theRequest + request }

// RequestOf is the person's request in a prompt: the prompt, or the request that [GoOnPrompt]
// repeats.
func RequestOf(prompt string) string {
	if i := strings.LastIndex(prompt, theRequest); i >= 0 && strings.HasPrefix(prompt, goOn) {
		return prompt[i+len(theRequest):]
	}
	return prompt
}

// QueueChanged says that a queued turn was edited or moved.
type QueueChanged struct {
	Text      *string  `json:"text,omitempty"`      // the new prompt; nil: as before
	Truncated bool     `json:"truncated,omitempty"` // Text is cut to [MaxEventText]
	Order     []string `json:"order"`               // the ids of the session's queued turns, the next one first
}

// EventQueue is the kind of [QueueChanged].
const EventQueue EventKind = "queue.changed"

func (QueueChanged) Kind() EventKind { return EventQueue }

func (p QueueChanged) Size() int {
	size := fieldsSize
	if p.Text != nil {
		size += len(*p.Text)
	}
	for _, id := range p.Order {
		size += len(id)
	}
	return size
}

// A TurnTrigger is why an agent-initiated turn started. Kind is the agent's own word, Label
// names what has finished, such as a background command. Both are "" if the agent does not say.
type TurnTrigger struct {
	Kind  string
	Label string
}

// String describes the trigger for users.
func (t TurnTrigger) String() string {
	text := "Continued by itself"
	switch kind := strings.ToLower(t.Kind); {
	case strings.Contains(kind, "goal"):
		text += ": working towards its goal"
	case strings.Contains(kind, "background"), strings.Contains(kind, "task"):
		text += ": background task finished"
	case kind != "":
		text += ": " + strings.NewReplacer("_", " ", "-", " ").Replace(t.Kind)
	}
	if t.Label != "" {
		text += " (" + t.Label + ")"
	}
	return text
}
