package store

import (
	"encoding/json"
	"strings"
	"time"
)

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

// A Thread is a conversation with one agent in one directory.
type Thread struct {
	ID            int64
	UUID          string
	Title         string
	CWD           string
	Agent         string // its name in the configuration; "" until one is needed, in a history that was taken over
	NativeSession string // the agent's own id of the conversation; empty before the first turn
	Mode          string // permission mode: default, acceptEdits, bypassPermissions, plan
	Model         string
	Settings      Settings
	Parent        int64 // the thread that it was forked from, or 0
	ForkRun       int64 // the last run of Parent that belongs to it, or 0
	Archived      bool
	Created       time.Time
	Active        time.Time // when something happened last
}

// Settings are what a caller said about a thread and what was changed since.
type Settings struct {
	AutoAcceptEdits       bool            `json:"auto_accept_edits,omitempty"`
	SkipPermissions       bool            `json:"skip_permissions,omitempty"`
	SkipPermissionsUntil  *time.Time      `json:"skip_permissions_until,omitempty"` // nil: without end
	SystemPrompt          string          `json:"system_prompt,omitempty"`
	AppendSystemPrompt    string          `json:"append_system_prompt,omitempty"`
	CustomInstructions    string          `json:"custom_instructions,omitempty"`
	PermissionPromptTool  string          `json:"permission_prompt_tool,omitempty"`
	AllowedTools          []string        `json:"allowed_tools,omitempty"`
	DisallowedTools       []string        `json:"disallowed_tools,omitempty"`
	AdditionalDirectories []string        `json:"additional_directories,omitempty"`
	MCPServers            json.RawMessage `json:"mcp_servers,omitempty"` // a list of catalog.MCPServer
	MaxTurns              int             `json:"max_turns,omitempty"`
	Verbose               bool            `json:"verbose,omitempty"`
}

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
	Parent    int64 // the run that it continues, or 0
	Prompt    string
	Title     string
	Agent     string
	Source    string // who asked for it: task, session, chat, execute, prompt, decision
	State     State
	Priority  int // higher first
	Mode      string
	Tools     []string      // allowed; empty: all
	Timeout   time.Duration // 0: the configured one
	Quiet     bool          // no deltas are wanted
	Created   time.Time
	Started   time.Time // zero before
	Ended     time.Time // zero before
	Active    time.Time // when something happened last
	Error     string
	ErrorCode string // in capitals: ORPHANED, TIMEOUT, AGENT_EXITED, ...
	Stop      string // the agent's stop reason
	Result    string // the last message of the agent
	Messages  int    // how many the agent sent
	Tokens    Tokens
	Progress  json.RawMessage
	Metadata  json.RawMessage
}

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
	Thread        Thread
	ParentSession string // SessionID of the run that it continues, or ""
}

// An Event is an entry of the log.
type Event struct {
	Seq    int64 // 0: not kept, such as a terminal's output
	Time   time.Time
	Type   string
	Thread int64           // or 0
	Run    int64           // or 0
	Key    string          // of a delta: the message's id
	Text   string          // of a delta: its text
	Data   json.RawMessage // of everything else: what clients see
}

// An Item is an entry of a conversation, folded from events: a message, a
// thought, or a tool call with its result.
type Item struct {
	ID       int64
	Thread   int64
	Run      int64
	Seq      int64  // of the event that made or changed it last
	Kind     string // message, thinking, tool_call, system, plan, diff, approval
	Key      string // the agent's id of it, or one of ours
	Role     string // user or assistant
	Content  string
	Tool     string
	Title    string
	ToolKind string
	Input    json.RawMessage
	Status   string // of a tool call: pending, in_progress, completed, failed
	Result   string
	ParentID string
	Data     json.RawMessage // of a tool call: paths, diffs, terminal; of a plan: entries; of a diff: path, added, removed; of an approval: what was asked and answered
	Approval string          // the id of the last approval that it needed
	Created  time.Time
	Updated  time.Time
}

// An Approval is a question to a human: may a tool run (function_call), or
// something else (human_contact).
type Approval struct {
	ID           string // a UUID
	Thread       int64
	Run          int64
	Type         string // function_call or human_contact
	CallID       string // no other approval's: see ToolUseID and InsertApproval
	Tool         string
	Input        json.RawMessage
	Title        string
	Subject      string
	ToolKind     string
	Paths        []string
	Diffs        json.RawMessage // a list of catalog.FileDiff
	Options      json.RawMessage // a list of catalog.PermissionOption
	Channel      json.RawMessage
	Status       string // pending, approved, denied, responded, expired, cancelled
	Stale        bool   // the process that asked is dead
	Carried      bool   // decided while stale: answers the same question when it is asked again
	Question     string // a hash of tool and input, by which it is known again
	Created      time.Time
	Deadline     time.Time // zero: none
	Decided      time.Time // zero: not yet
	DecidedBy    string    // user, rule, mode, timeout, end, overtaken
	Comment      string
	Response     string
	Option       string
	UpdatedInput json.RawMessage
	InputFixed   bool // whoever asks would not heed a changed input
	NameByKind   bool // the agent has not named the tool: Tool is made of ToolKind

	// What becomes of a human's answer that lets an agent go on.
	AwaitedBy  int64     // the run whose agent waits for it, or has it and is not known to have gone on from it; 0: none
	Taken      time.Time // when the agent was known to have gone on from it; zero: it is not
	ReopenedAs string    // the ID of the question that asks the same again, since that never came; or ""
	Reopens    string    // the ID of the question that this one asks again, or ""
	Reopened   string    // why, in words
}

// ToolUseID is the agent's own id of the tool call, or ID. Agents number their
// calls in each session anew.
func (a Approval) ToolUseID() string { return strings.TrimSuffix(a.CallID, a.callMark()) }

// InputEditable reports whether a decision may change the tool's input.
func (a Approval) InputEditable() bool { return a.Type == FunctionCall && !a.InputFixed }

// callMark makes a call's id unique.
func (a Approval) callMark() string { return "." + a.ID[:min(len(a.ID), 8)] }

// Values of Approval.Status.
const (
	ApprovalPending   = "pending"
	ApprovalApproved  = "approved"
	ApprovalDenied    = "denied"
	ApprovalResponded = "responded"
	ApprovalExpired   = "expired"
	ApprovalCancelled = "cancelled"
)

// Values of Approval.Type.
const (
	FunctionCall = "function_call"
	HumanContact = "human_contact"
)

// A Change is a file that a run changed.
type Change struct {
	Run     int64
	Path    string
	Before  *string // nil: there was none, or Binary
	After   *string
	Binary  bool
	Seq     int64
	Updated time.Time
}

// A Rule answers questions before they are asked.
type Rule struct {
	ID      int64
	Thread  int64  // 0: the whole project
	Effect  string // allow or deny
	Tool    string
	Command string // "" : any input
	Created time.Time
}

// A Process is an agent that was started and has not ended as far as we know.
type Process struct {
	PID  int
	Mark string // value of DUET_AGENT in its environment
	Run  int64
}

// Counts are how many runs are in which state.
type Counts map[State]int
