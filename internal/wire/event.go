package wire

import (
	"encoding/json"
	"time"

	"github.com/duet-rpc/duet-rpc/client"
)

// The types of events that are told apart.
const (
	EventStatus       = "session_status_changed"
	EventConversation = "conversation_updated"
	EventApproval     = "new_approval"
	EventResolved     = "approval_resolved"
	EventSettings     = "session_settings_changed"
	EventDelta        = "message_delta"
	EventThinking     = "thinking_delta"
	EventPlan         = "plan"
	EventUsage        = "usage"
	EventDiff         = "diff_updated"
	EventTerminal     = "terminal_output"
	EventTerminalExit = "terminal_exit"
	EventError        = "task_error"
	EventAgentUpdate  = "agent_update"
	EventSilent       = "agent_silent"
	EventAgentSession = "agent_session"
	EventDeleted      = "session_deleted"
	EventTrigger      = "trigger_executed"
	EventBuild        = "build_progress"
	EventIteration    = "iteration_start"
	EventGateStart    = "gate_start"
	EventGate         = "gate_result"
	EventGatesEnded   = "gates_complete"
	EventDecided      = "change_decided"
	EventQueue        = "queue_changed"
	EventSecret       = "secret_requested"
	EventLagged       = client.TypeLagged
)

// EventTypes are all types that can be subscribed to.
var EventTypes = []string{
	EventStatus, EventConversation, EventApproval, EventResolved, EventSettings, EventDelta, EventThinking, EventPlan, EventUsage, EventDiff,
	EventTerminal, EventTerminalExit, "task_progress", EventError, EventAgentUpdate, EventGate, EventBuild, EventLagged,
	client.TypeLogDamaged, EventSecret, EventAgentSession, EventSilent, EventDeleted, EventTrigger, EventIteration, EventGateStart, EventGatesEnded, EventDecided, EventQueue,
}

// EventData is what is read of an event, whatever its type; docs/protocol.md
// says which members each type has.
type EventData struct {
	SessionID string   `json:"session_id"`
	TaskID    string   `json:"task_id"`
	TaskIDs   []string `json:"task_ids"` // of what was deleted

	OldState  string `json:"old_state"`
	State     string `json:"state"`
	Reason    string `json:"reason"`
	Error     string `json:"error"`
	AgentMode string `json:"agent_mode"`

	ErrorCode   string       `json:"error_code"`
	StopReason  string       `json:"stop_reason"`
	AuthMethods []AuthMethod `json:"auth_methods"`

	AgentSession

	MessageID   string          `json:"message_id"`
	Delta       string          `json:"delta"`
	EventType   string          `json:"event_type"` // of a conversation: EntryMessage and the like
	Role        string          `json:"role"`
	Content     string          `json:"content"`
	Subtype     string          `json:"subtype"`
	ToolID      string          `json:"tool_id"`
	ToolName    string          `json:"tool_name"`
	ToolTitle   string          `json:"tool_title"`
	ToolKind    string          `json:"tool_kind"`
	ToolStatus  string          `json:"tool_status"`
	ToolInput   json.RawMessage `json:"tool_input"`
	ToolData    ToolData        `json:"tool_data"`
	Result      string          `json:"tool_result_content"`
	RefusedBy   string          `json:"refused_by"`
	Refusal     string          `json:"refusal"`
	ParentTool  string          `json:"parent_tool_use_id"`
	Attachments []Attachment    `json:"attachments"`
	Entries     []PlanEntry     `json:"entries"`

	ContextUsed int64   `json:"context_used"`
	ContextSize int64   `json:"context_size"`
	CostUSD     float64 `json:"cost_usd"`

	Meta json.RawMessage `json:"_meta"` // the agent's own, of a message, a piece of it or its usage

	Path      string `json:"path"`
	Diff      string `json:"diff"`
	Added     int    `json:"added"`
	Removed   int    `json:"removed"`
	Binary    bool   `json:"binary"`
	Truncated bool   `json:"truncated"`

	ApprovalID  string `json:"approval_id"`
	Title       string `json:"title"`
	Decision    string `json:"decision"`
	DecidedBy   string `json:"decided_by"`
	Explanation string `json:"explanation"`
	Comment     string `json:"comment"`
	Response    string `json:"response_text"`

	TerminalID string `json:"terminal_id"`
	Data       string `json:"data"`
	Encoding   string `json:"encoding"`
	ExitCode   int    `json:"exit_code"`
	Signal     string `json:"signal"` // that ended the program of a terminal

	RequestID string `json:"request_id"` // of a key that is asked for
	Service   string `json:"service"`    // whose key that is

	Iteration     int          `json:"iteration"`
	MaxIterations int          `json:"max_iterations"`
	Gates         []string     `json:"gates"`
	Gate          string       `json:"gate"`
	Passed        bool         `json:"passed"`
	Findings      []Diagnostic `json:"findings"`
	Output        string       `json:"output"`
	Milliseconds  int64        `json:"duration_ms"`
	GatesState    string       `json:"gates_state"`
	Failing       []string     `json:"failing"`

	Since time.Time `json:"since"`
	Note  string    `json:"note"`
	Ended bool      `json:"ended"`

	Code    string          `json:"code"` // of an error that an agent reports
	Message string          `json:"message"`
	Update  json.RawMessage `json:"update"` // as the agent sent it
	ToSeq   int64           `json:"to_seq"`
}

// GateResult is what came of a gate, of an event of the type EventGate.
func (d EventData) GateResult() GateResult {
	return GateResult{d.Gate, d.Passed, d.Reason, d.Findings, d.Output, d.Milliseconds}
}

// GatesEnded are where work stands of which nothing more comes, of an event of the type
// EventGatesEnded.
func (d EventData) GatesEnded() *Gates {
	return &Gates{State: d.GatesState, Reason: d.Reason, Iteration: d.Iteration, MaxIterations: d.MaxIterations, Failing: d.Failing}
}

// DataOf is the data of an event. What cannot be read of it is zero.
func DataOf(e client.Event) (d EventData) {
	_ = json.Unmarshal(e.Data, &d)
	return d
}

// ApprovalOf is the approval that an event of the type EventApproval tells of.
func ApprovalOf(e client.Event) (a Approval) {
	_ = json.Unmarshal(e.Data, &a) // what cannot be read of it is zero
	return a
}
