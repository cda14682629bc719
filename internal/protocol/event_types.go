package protocol

import (
	"encoding/json"
	"time"

	"github.com/duet-rpc/duet-rpc/internal/domain"
)

// The data of events, one type for each kind. See [EventKinds].

// A TurnStateEvent is a change of a turn's state.
type TurnStateEvent struct {
	SessionUUID string       `json:"session_uuid"`
	OldState    domain.State `json:"old_state,omitempty" doc:"The state before. Absent: the turn is new."`
	State       domain.State `json:"state"`
	ParentUUID  string       `json:"parent_uuid,omitempty" doc:"The turn before, by its uuid."`
	Title       string       `json:"title,omitempty"`
	Agent       string       `json:"agent,omitempty"`
	Reason      string       `json:"reason,omitempty" doc:"Why the state changed, such as timeout."`
	Error       string       `json:"error,omitempty" doc:"Why the turn ended badly, for people."`
	ErrorCode   string       `json:"error_code,omitempty"`
	StopReason  string       `json:"stop_reason,omitempty" doc:"The agent's reason to end the turn."`

	AuthMethods []domain.AuthMethod `json:"auth_methods,omitempty" doc:"With AGENT_AUTH_REQUIRED: the ways to sign in."`
}

// An ItemType is a kind of [Item].
type ItemType string

// Values of [Item.Type].
const (
	ItemMessage  ItemType = "message"
	ItemThought  ItemType = "thought"
	ItemNotice   ItemType = "notice"
	ItemToolCall ItemType = "tool_call"
	ItemPlan     ItemType = "plan"
	ItemChange   ItemType = "change"
	ItemAnswer   ItemType = "answer"
)

// itemTypes are the types of items, by the domain's.
var itemTypes = map[string]ItemType{
	domain.ItemMessage: ItemMessage, domain.ItemThinking: ItemThought, domain.ItemSystem: ItemNotice, domain.ItemTool: ItemToolCall,
	domain.ItemPlan: ItemPlan, domain.ItemFile: ItemChange, domain.ItemApproval: ItemAnswer,
}

// Accepted implements schema.Enum.
func (ItemType) Accepted() []string {
	return []string{"message", "thought", "notice", "tool_call", "plan", "change", "answer"}
}

// A ToolStatus is the state of a tool call.
type ToolStatus string

// Values of [Item.Status].
const (
	ToolPending   ToolStatus = "pending"
	ToolWorking   ToolStatus = "in_progress"
	ToolCompleted ToolStatus = "completed"
	ToolFailed    ToolStatus = "failed"
)

// Accepted implements schema.Enum.
func (ToolStatus) Accepted() []string {
	return []string{"pending", "in_progress", "completed", "failed"}
}

// An Item is a part of a turn: a message, a thought, a notice of Duet, or a tool call.
type Item struct {
	Type ItemType `json:"type"`
	Key  string   `json:"key" doc:"Its id. That of a tool call is the agent's, unique in its turn, and the tool_use_id of its approval. An item replaces an earlier one with the same key."`

	Role    string `json:"role,omitempty" doc:"Message: user or assistant."`
	Text    string `json:"text,omitempty"`
	Subtype string `json:"subtype,omitempty" doc:"What a notice is about, such as worktree."`

	Title     string          `json:"title,omitempty" doc:"What the tool call does, for people."`
	ToolName  string          `json:"tool_name,omitempty"`
	ToolKind  string          `json:"tool_kind,omitempty" doc:"read, edit, delete, move, search, execute, think, fetch or other."`
	Status    ToolStatus      `json:"status,omitempty" doc:"Of a tool call."`
	ToolInput json.RawMessage `json:"tool_input,omitempty" doc:"Absent in an event: as before."`
	Details   *ToolDetails    `json:"details,omitempty" doc:"Absent in an event: as before."`
	Result    string          `json:"result,omitempty" doc:"Of a tool call that has ended."`
	RefusedBy string          `json:"refused_by,omitempty" doc:"What refused the tool call, as decided_by of an approval. Absent if the call failed for another reason."`
	Refusal   string          `json:"refusal,omitempty" doc:"The reason, for people."`

	ParentID       string       `json:"parent_tool_use_id,omitempty" doc:"The key of the tool call that contains it, such as that of a sub-agent."`
	AgentSessionID string       `json:"agent_session_id,omitempty" doc:"The agent's id of its session."`
	Truncated      bool         `json:"truncated,omitempty" doc:"A text is cut; session.items has the whole text."`
	Attachments    []Attachment `json:"attachments,omitempty" doc:"Content of a message or thought that is not text. attachment.get returns its bytes."`

	Meta json.RawMessage `json:"_meta,omitempty" doc:"Of a message or thought: the agent's own, at most 8 KiB."`
}

// Ended reports whether a tool call has ended.
func (i *Item) Ended() bool { return i.Status == ToolCompleted || i.Status == ToolFailed }

// A TextEvent is text of a message or thought that is being written.
type TextEvent struct {
	Key      string `json:"key" doc:"Of the message or thought."`
	Text     string `json:"text" doc:"What follows the text so far."`
	Length   int    `json:"length,omitempty" doc:"The length of the whole text so far, in UTF-16 code units, as JavaScript counts. Absent if the daemon reads the text from the store again."`
	ParentID string `json:"parent_tool_use_id,omitempty" doc:"The tool call of the sub-agent that writes it."`

	Meta json.RawMessage `json:"_meta,omitempty" doc:"The agent's own."`
}

// An ApprovalOpenedEvent is a new question. Its members are those of an [Approval].
type ApprovalOpenedEvent struct {
	ApprovalID   string          `json:"approval"`
	CallID       string          `json:"call_id"`
	ToolUseID    string          `json:"tool_use_id,omitempty" doc:"The agent's id of the waiting tool call."`
	ParentID     string          `json:"parent_tool_use_id,omitempty" doc:"The tool call of the sub-agent that asks."`
	Type         ApprovalType    `json:"type"`
	ToolName     string          `json:"tool_name"`
	ToolInput    json.RawMessage `json:"tool_input,omitempty"`
	ToolKind     string          `json:"tool_kind,omitempty" doc:"read, edit, delete, move, search, execute, think, fetch or other."`
	Editable     bool            `json:"input_editable" doc:"Whether a decision may have updated_input."`
	TextMember   string          `json:"input_text_member,omitempty" doc:"The member of tool_input to edit as a text."`
	Ambiguity    string          `json:"input_ambiguity,omitempty" doc:"Why programs may read tool_input differently."`
	Title        string          `json:"title,omitempty" doc:"The question, for people."`
	Subject      string          `json:"subject,omitempty"`
	Options      []domain.Option `json:"options,omitzero" doc:"The agent's answers to choose from: [{option_id,name,kind}]."`
	OptionsOnly  bool            `json:"options_only,omitempty" doc:"Only one of the options is an answer."`
	Declinable   bool            `json:"declinable,omitempty" doc:"human_contact: it can also be denied."`
	Paths        []string        `json:"paths,omitempty" doc:"The files that the call touches."`
	Diffs        []domain.Diff   `json:"diffs,omitempty" doc:"The changes that the tool would make."`
	Plan         string          `json:"plan,omitempty" doc:"The agent's plan, if it asks to leave its plan mode."`
	Details      string          `json:"details,omitempty" doc:"The agent's text about the tool call, for people."`
	Rules        RulePreviews    `json:"rule_preview,omitempty" doc:"The rule that a decision with a scope would make, by scope."`
	TakesComment bool            `json:"takes_comment,omitempty" doc:"The agent receives the comment with the decision."`
	Stale        bool            `json:"stale,omitempty" doc:"The process that asked is gone. Approving resumes the turn."`
	Reopens      string          `json:"reopens,omitempty" doc:"The approval that this one repeats."`
	Reopened     string          `json:"reopened,omitempty" doc:"Why Duet asks again, for people."`
	Replayed     bool            `json:"replayed,omitempty" doc:"A pending question that comes again."`
	Truncated    bool            `json:"truncated,omitempty" doc:"Parts were left out; approval.get has them."`
	*Elicitation
}

// An ApprovalClosedEvent is the end of a question. Its members are those of an [Approval].
type ApprovalClosedEvent struct {
	ApprovalID  string         `json:"approval"`
	CallID      string         `json:"call_id"`
	Type        ApprovalType   `json:"type"`
	Status      ApprovalStatus `json:"status" doc:"Not pending."`
	Response    string         `json:"response,omitempty"`
	Comment     string         `json:"comment,omitempty"`
	Option      string         `json:"option,omitempty" doc:"The chosen option."`
	DecidedBy   string         `json:"decided_by"`
	DecidedIn   string         `json:"decided_in,omitempty" doc:"The client in which the user decided."`
	Title       string         `json:"title,omitempty"`
	ToolName    string         `json:"tool_name,omitempty"`
	ToolUseID   string         `json:"tool_use_id,omitempty"`
	Edited      bool           `json:"input_was_edited,omitempty"`
	Explanation string         `json:"explanation,omitempty" doc:"Describes the rule or mode that decided."`
}

// An AgentSessionEvent has the changed parts of an agent's report about its session, each whole.
type AgentSessionEvent struct {
	AgentSession
	Truncated bool `json:"truncated,omitempty" doc:"turn.get has the rest."`
}

// A PlanEvent is an agent's plan, whole.
type PlanEvent struct {
	Entries []domain.PlanEntry `json:"entries"`
}

// A UsageEvent is an agent's report of tokens, context and cost.
type UsageEvent struct {
	InputTokens      int64   `json:"input_tokens"`
	OutputTokens     int64   `json:"output_tokens"`
	CacheReadTokens  int64   `json:"cache_read_tokens,omitempty"`
	CacheWriteTokens int64   `json:"cache_write_tokens,omitempty"`
	ContextUsed      int64   `json:"context_used,omitempty" doc:"Tokens in the context."`
	ContextSize      int64   `json:"context_size,omitempty" doc:"Tokens that fit into the context."`
	CostUSD          float64 `json:"cost_usd,omitempty"`

	Meta json.RawMessage `json:"_meta,omitempty" doc:"The agent's own."`
}

// A ChangeEvent is a file that a turn changed.
type ChangeEvent struct {
	Path      string `json:"path"`
	Diff      string `json:"diff" doc:"The change since the turn began, as a unified diff."`
	Added     int    `json:"added" doc:"Number of added lines."`
	Removed   int    `json:"removed"`
	Binary    bool   `json:"binary,omitempty"`
	Truncated bool   `json:"truncated,omitempty" doc:"The diff is cut; change.list has all of it."`
}

// A ChangeDecidedEvent is a decision about a change, or its withdrawal.
type ChangeDecidedEvent struct {
	Path     string `json:"path"`
	Decision string `json:"decision" doc:"accept, revert or reopen."`
	Hunk     string `json:"hunk,omitempty" doc:"The hunk's id. Absent: the whole file."`
}

// A QueueEvent is a change of a session's queue.
type QueueEvent struct {
	Prompt    *string  `json:"prompt,omitempty" doc:"The turn's new prompt, if it was edited."`
	Truncated bool     `json:"truncated,omitempty" doc:"prompt is cut."`
	Order     []string `json:"order" doc:"The uuids of the session's queued turns, the next one first."`
}

// A TerminalOutputEvent is output of a terminal.
type TerminalOutputEvent struct {
	TerminalID string `json:"terminal_id"`
	Data       string `json:"data"`
	Encoding   string `json:"encoding" doc:"Of data: utf-8 or base64."`
}

// A TerminalExitedEvent is the end of a terminal's program.
type TerminalExitedEvent struct {
	TerminalID string `json:"terminal_id"`
	ExitCode   int    `json:"exit_code"`
	Signal     string `json:"signal,omitempty" doc:"The signal that ended the program."`
}

// A TerminalLaggedEvent says that output of a terminal was left out.
type TerminalLaggedEvent struct {
	TerminalID string `json:"terminal_id"`
	Dropped    int    `json:"dropped_bytes"`
}

// A ProgressEvent is a report of a turn's progress. The report may have other members, too.
type ProgressEvent struct {
	Percent        *float64 `json:"percent,omitempty" doc:"0 to 100."`
	Message        string   `json:"message,omitempty"`
	CompletedSteps *int     `json:"completed_steps,omitempty"`
	TotalSteps     *int     `json:"total_steps,omitempty"`
}

// An AgentErrorEvent is an error that does not end the turn. The report may have other members, too.
type AgentErrorEvent struct {
	Code    string `json:"code" doc:"Such as MCP_SERVER_FAILED."`
	Message string `json:"message"`
}

// IsItem reports whether the error also comes as a notice, which a client shows instead.
func (e *AgentErrorEvent) IsItem() bool {
	switch e.Code {
	case "MCP_SERVER_FAILED", "CONTENT_REFUSED", "SETTING_IGNORED", "RULES_NOT_ASKED":
		return true
	}
	return false
}

// An AgentUpdateEvent is an agent's update of a kind that the daemon does not know.
type AgentUpdateEvent struct {
	Update json.RawMessage `json:"update" doc:"As the agent sent it."`
}

// A SilentEvent says that an agent gives no sign of life, or works again.
type SilentEvent struct {
	Since     time.Time `json:"since" doc:"The agent's last sign of life."`
	Note      string    `json:"note,omitempty" doc:"What the agent has written to its stderr since then."`
	ToolID    string    `json:"tool_use_id,omitempty" doc:"The running tool call."`
	ToolTitle string    `json:"tool_title,omitempty"`
	Ended     bool      `json:"ended" doc:"The agent works again."`
}

// A GateIterationEvent is the start of a turn of work that has gates.
type GateIterationEvent struct {
	Iteration     int      `json:"iteration" doc:"From 1."`
	MaxIterations int      `json:"max_iterations"`
	Gates         []string `json:"gates"`
}

// A GateStartedEvent is the start of a gate.
type GateStartedEvent struct {
	Gate      string `json:"gate"`
	Iteration int    `json:"iteration"`
}

// A GateResultEvent is the result of a gate.
type GateResultEvent struct {
	GateResult
	Iteration     int `json:"iteration" doc:"The turn of the work, from 1."`
	MaxIterations int `json:"max_iterations"`
}

// A GatesEndedEvent is the end of work that has gates.
type GatesEndedEvent struct {
	State         string   `json:"gates_state" doc:"passed, failed or stopped."`
	Reason        string   `json:"reason,omitempty"`
	Iteration     int      `json:"iteration"`
	MaxIterations int      `json:"max_iterations"`
	Failing       []string `json:"failing,omitempty" doc:"The gates that did not pass."`
}

// Gates returns the final state of the gates.
func (e *GatesEndedEvent) Gates() *Gates {
	return &Gates{State: e.State, Reason: e.Reason, Iteration: e.Iteration, MaxIterations: e.MaxIterations, Failing: e.Failing}
}

// A BuildEvent is the start or the end of a build of the project.
type BuildEvent struct {
	BuildID     string              `json:"build_id"`
	Name        string              `json:"name"`
	Stage       string              `json:"stage" doc:"started, succeeded, failed or cancelled."`
	Command     []string            `json:"command"`
	DurationMS  int64               `json:"duration_ms,omitempty" doc:"At the end."`
	Errors      int                 `json:"errors,omitempty"`
	Warnings    int                 `json:"warnings,omitempty"`
	Diagnostics []domain.Diagnostic `json:"diagnostics,omitempty" doc:"The first ones."`
	Reason      string              `json:"reason,omitempty" doc:"Why it failed."`
}

// A TriggerFiredEvent is an execution of a trigger. The event names the turn that it started.
type TriggerFiredEvent struct {
	Execution int64  `json:"execution_id"`
	Trigger   string `json:"trigger"`
	EventType string `json:"event_type"`
	Action    string `json:"action"`
	Status    string `json:"status"`
	Message   string `json:"message,omitempty" doc:"The text of a notification."`
	Channel   string `json:"channel,omitempty"`
	Approval  string `json:"approval,omitempty" doc:"The question that the trigger waits for."`
	Error     string `json:"error,omitempty"`
}

// A SecretEvent asks for an API key.
type SecretEvent struct {
	RequestID string `json:"request_id"`
	Service   string `json:"service" doc:"Whose key it is, as in [keys.NAME]."`
	Agent     string `json:"agent"`
}

// A LaggedEvent names the deltas that a subscription left out because the client did not keep up.
type LaggedEvent struct {
	From int64 `json:"from_seq"`
	To   int64 `json:"to_seq"`
}

// A LogDamagedEvent names events that cannot be read.
type LogDamagedEvent struct {
	From    int64  `json:"from_seq,omitempty"`
	To      int64  `json:"to_seq,omitempty"`
	Message string `json:"message"`
}

// A DaemonEvent says that the daemon does not answer, or answers again. The editor's process sends it.
type DaemonEvent struct {
	Message string `json:"message"`
}
