package domain

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
)

// A Run is one prompt and its execution. Task, session and run are names of
// it: every one of its ids finds it.
type Run struct {
	ID        int64           `db:"id,key"`
	UUID      string          `db:"uuid,fixed"`       // UUIDv7, ours
	Task      int64           `db:"task,fixed"`       // the number in task-0001
	SessionID string          `db:"session_id,fixed"` // a UUID, HumanLayer's session_id
	RunID     string          `db:"run_id,fixed"`     // a UUID, HumanLayer's run_id
	CallerID  string          `db:"caller_id,fixed"`  // the caller's own id of it, or ""
	Thread    int64           `db:"thread,fixed"`
	Place     int64           `db:"place,fixed"`  // orders the runs of a thread: its ID, unless queued runs were reordered
	Parent    int64           `db:"parent,fixed"` // the run that it continues, or 0
	Prompt    string          `db:"prompt,fixed"`
	Content   []Block         `db:"content,fixed"` // what goes with the prompt beside its text
	Title     string          `db:"title"`
	Agent     string          `db:"agent"`
	Source    string          `db:"source"` // who asked for it: one of the Source constants
	State     State           `db:"state"`
	Priority  int             `db:"priority"`    // higher first
	Mode      string          `db:"mode"`        // that people asked for: a permission mode of ours, or a mode of the agent's
	AgentMode string          `db:"agent_mode"`  // that its agent said it is in, last, or is to go on in; "" if it says nothing
	Model     string          `db:"agent_model"` // that its agent said it works with; "" if it says nothing
	Tools     []string        `db:"tools"`       // allowed; empty: all
	Timeout   time.Duration   `db:"timeout"`     // 0: the configured one
	Quiet     bool            `db:"quiet"`       // no deltas are wanted
	Created   time.Time       `db:"created"`
	Started   time.Time       `db:"started"` // zero before
	Ended     time.Time       `db:"ended"`   // zero before
	Active    time.Time       `db:"active"`  // when something happened last
	Error     string          `db:"error"`
	ErrorCode string          `db:"error_code"` // in capitals: ORPHANED, TIMEOUT, AGENT_EXITED, ...
	Stop      string          `db:"stop"`       // the agent's stop reason
	SignIn    []AuthMethod    `db:"sign_in"`    // that the agent offers, where it failed because somebody has to sign in
	Result    string          `db:"result"`     // the last message of the agent
	Messages  int             `db:"messages"`   // how many the agent sent
	Tokens    Tokens          `db:"tokens"`
	Progress  json.RawMessage `db:"progress"` // how far it is, in its executor's words: the JSON that it last reported
	Metadata  json.RawMessage `db:"metadata"` // the caller's own: a JSON object, to which the agent's plan is added

	// Restricted says that the client did not trust the workspace: nothing that the
	// project's file defines is run or heeded. See package clientenv.
	Restricted bool `db:"restricted"`
}

// CodeStoreFull is the ErrorCode of a run that a full disk has cut short: what was
// open in it was not closed.
const CodeStoreFull = "STORE_FULL"

// Tokens is what a run cost.
type Tokens struct {
	Input       int64   `json:"input,omitempty"`
	Output      int64   `json:"output,omitempty"`
	CacheRead   int64   `json:"cache_read,omitempty"`
	CacheWrite  int64   `json:"cache_write,omitempty"`
	ContextUsed int64   `json:"context_used,omitempty"`
	ContextSize int64   `json:"context_size,omitempty"`
	CostUSD     float64 `json:"cost_usd,omitempty"`
}

// A Session is a run together with its thread: what most callers want to see.
type Session struct {
	Run
	Thread        Thread `db:",inline"`
	ParentSession string `db:"parent_session,read"` // SessionID of the run that it continues, or ""
	FirstWords    string `db:"first_words,read"`    // of the prompt with which the thread began: at most 400 characters
}

// A RunFilter chooses runs. The zero value means all.
type RunFilter struct {
	States   []State
	Agent    string
	Source   string
	Thread   int64
	Archived *bool // of the thread
	Leaves   bool  // only the last run of each thread
	Before   int64 // only runs with a smaller row: for paging
	Limit    int   // at most that many; 0: 1,000
}

// A RunHead is what of a run its conversation needs, without its texts.
type RunHead struct {
	ID        int64  `db:"id"`
	SessionID string `db:"session_id"`
	State     State  `db:"state"`
	ErrorCode string `db:"error_code"`
}

// TaskName is the number of a run as AIWG spells it, such as task-0001.
func TaskName(n int64) string { return fmt.Sprintf("task-%04d", n) }

// IsTaskName reports whether an id is of the form that TaskName gives, so that
// it is, was or may become the name of a run.
func IsTaskName(id string) bool {
	digits, ok := strings.CutPrefix(id, "task-")
	return ok && len(digits) >= 4 && strings.Trim(digits, "0123456789") == ""
}

// Counts are how many runs are in which state.
type Counts map[State]int

// Where a run came from: values of Run.Source.
const (
	SourceTask     = "task"     // task.submit
	SourceChat     = "chat"     // chat.send
	SourceSession  = "session"  // launchSession, continueSession
	SourceExecute  = "execute"  // execute_prompt
	SourceDecision = "decision" // a stale approval was approved
	SourceAdopted  = "adopted"  // agent.adopt: it was begun without Duet
	SourceTrigger  = "trigger"  // a trigger of the configuration
	SourceGate     = "gate"     // what gates complain of
	SourceAgent    = "agent"    // an agent-initiated turn: no prompt

	// Questions of clients that have no run of an agent: askUser, requestPermission.
	SourceQuestion     = "question"      // its question is taken back when its caller goes
	SourceKeptQuestion = "kept_question" // its question stays when its caller goes
)

// IsWritten reports whether the prompt of a run was written for it by a client, so that
// clients may change it while the run is queued.
func (r Run) IsWritten() bool {
	switch r.Source {
	case SourceTask, SourceChat, SourceSession, SourceExecute:
		return true
	}
	return false
}

// IsQuestion reports whether a run has no agent: it is one question of a client, and
// ends with that.
func (r Run) IsQuestion() bool { return r.Source == SourceQuestion || r.Source == SourceKeptQuestion }

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

// LastRun names the run that was begun last, drafts aside, wherever an id of a run is
// taken and nothing has it as an id.
const LastRun = "last"

// A prompt that asks an agent to go on where it was interrupted, which no human wrote,
// begins with goOn and repeats the request below theRequest.
const (
	goOn       = "Continue where you left off. "
	theRequest = "\n\nThe request was:\n\n"
)

// GoOnPrompt asks an agent to go on with a request where it was interrupted. why says
// what has happened, and what it is to do. Its own session may have lost the turn, so
// the request is repeated. The demo agent, which has no model, knows the first word
// and the line above the request.
func GoOnPrompt(why, request string) string { return goOn + why + theRequest + request }

// RequestOf is what a human asked for in a prompt: all of it, but of one of
// [GoOnPrompt] the request that it repeats.
func RequestOf(prompt string) string {
	if i := strings.LastIndex(prompt, theRequest); i >= 0 && strings.HasPrefix(prompt, goOn) {
		return prompt[i+len(theRequest):]
	}
	return prompt
}

// QueueChanged says that a queued run was edited, or has another place among the queued
// runs of its conversation.
type QueueChanged struct {
	Text      *string  `json:"text,omitempty"`      // the new prompt; nil: as before
	Truncated bool     `json:"truncated,omitempty"` // Text is cut to [MaxEventText]
	Order     []string `json:"order"`               // SessionIDs of the conversation's queued runs, the next one first
}

// EventQueue is the kind of [QueueChanged].
const EventQueue EventKind = "run.queue"

// Kind is EventQueue.
func (QueueChanged) Kind() EventKind { return EventQueue }

// Size is as of Payload.
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
