package domain

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

// A Run is one prompt and its execution. Task, session and run are names of
// it: every one of its ids finds it.
type Run struct {
	ID        int64
	UUID      string // UUIDv7, ours
	Task      int64  // the number in task-0001
	SessionID string // a UUID, HumanLayer's session_id
	RunID     string // a UUID, HumanLayer's run_id
	CallerID  string // the caller's own id of it, or ""
	Thread    int64
	Place     int64 // orders the runs of a thread: its ID, unless queued runs were reordered
	Parent    int64 // the run that it continues, or 0
	Prompt    string
	Content   []Block // what goes with the prompt beside its text
	Title     string
	Agent     string
	Source    string // who asked for it: one of the Source constants
	State     State
	Priority  int           // higher first
	Mode      string        // that people asked for: a permission mode of ours, or a mode of the agent's
	AgentMode string        // that its agent said it is in, last, or is to go on in; "" if it says nothing
	Model     string        // that its agent said it works with; "" if it says nothing
	Tools     []string      // allowed; empty: all
	Timeout   time.Duration // 0: the configured one
	Quiet     bool          // no deltas are wanted
	Created   time.Time
	Started   time.Time // zero before
	Ended     time.Time // zero before
	Active    time.Time // when something happened last
	Error     string
	ErrorCode string       // in capitals: ORPHANED, TIMEOUT, AGENT_EXITED, ...
	Stop      string       // the agent's stop reason
	SignIn    []AuthMethod // that the agent offers, where it failed because somebody has to sign in
	Result    string       // the last message of the agent
	Messages  int          // how many the agent sent
	Tokens    Tokens
	Progress  json.RawMessage // how far it is, in its executor's words: the JSON that it last reported
	Metadata  json.RawMessage // the caller's own: a JSON object, to which the agent's plan is added

	// Restricted says that the client did not trust the workspace: nothing that the
	// project's file defines is run or heeded. See package restricted.
	Restricted bool
}

// CodeStoreFull is the ErrorCode of a run that a full disk has cut short: what was
// open in it was not closed.
const CodeStoreFull = "STORE_FULL"

// Tokens is what a run cost.
type Tokens struct {
	Input       int64
	Output      int64
	CacheRead   int64
	CacheWrite  int64
	ContextUsed int64
	ContextSize int64
	CostUSD     float64
}

// A Session is a run together with its thread: what most callers want to see.
type Session struct {
	Run
	Thread        Thread
	ParentSession string // SessionID of the run that it continues, or ""
	FirstWords    string // of the prompt with which the thread began: at most 400 characters
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
	ID        int64
	SessionID string
	State     State
	ErrorCode string
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
