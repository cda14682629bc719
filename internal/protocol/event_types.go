package protocol

import (
	"encoding/json"
	"time"

	"github.com/duet-rpc/duet-rpc/internal/domain"
)

// An Event is the data of an event as clients get it. Each kind of event has one type, whose pointer
// implements Event; [EventKinds] lists them.
type Event interface {
	// Kind is the event's type on the wire, such as TypeStatus.
	Kind() string
	// Turn returns the ids of the turn that the event belongs to; the zero value: it belongs to none.
	Turn() TurnIDs
}

// TurnIDs name a turn in an event: one prompt and the work on it.
type TurnIDs struct {
	SessionID string `json:"session_id"`
	RunID     string `json:"run_id"`
	TaskID    string `json:"task_id"`

	// Session is the number of the session, and Name that of the turn, such as 12.3. The notification
	// has them beside the event; see [Locate].
	Session int64  `json:"-"`
	Name    string `json:"-"`
}

// Locate sets the numbers of the turn that an event belongs to, if it belongs to one.
func Locate(e Event, session int64, turn string) {
	if of, ok := e.(interface {
		locate(session int64, turn string)
	}); ok {
		of.locate(session, turn)
	}
}

func (t *TurnIDs) locate(session int64, turn string) {
	if t != nil {
		t.Session, t.Name = session, turn
	}
}

// Turn implements [Event].
func (t TurnIDs) Turn() TurnIDs { return t }

// ofNoTurn implements Turn for events that belong to no turn.
type ofNoTurn struct{}

// Turn implements [Event].
func (ofNoTurn) Turn() TurnIDs { return TurnIDs{} }

// A StatusEvent is a change of a turn's state.
type StatusEvent struct {
	TurnIDs
	ThreadID        string `json:"thread_id" doc:"The conversation's id."`
	OldStatus       string `json:"old_status" doc:"The status before. Empty: the session is new."`
	NewStatus       string `json:"new_status"`
	OldState        string `json:"old_state" doc:"The state before. Empty: the session is new."`
	State           string `json:"state"`
	ParentSessionID string `json:"parent_session_id,omitempty"`
	Title           string `json:"title,omitempty"`
	Agent           string `json:"agent,omitempty"`
	Reason          string `json:"reason,omitempty" doc:"Why the state changed, such as timeout."`
	Error           string `json:"error,omitempty" doc:"Why the turn ended badly, for people."`
	ErrorCode       string `json:"error_code,omitempty"`
	StopReason      string `json:"stop_reason,omitempty" doc:"The agent's reason to end the turn."`

	AuthMethods []domain.AuthMethod `json:"auth_methods,omitempty" doc:"With AGENT_AUTH_REQUIRED: the ways to sign in."`
}

// An ItemEvent is an item of a conversation: a message, thought, notice or tool call.
type ItemEvent struct {
	TurnIDs
	NativeID    string          `json:"claude_session_id" doc:"The agent's id of its session."`
	EventType   string          `json:"event_type" doc:"message, thinking, tool_call, tool_result or system."`
	MessageID   string          `json:"message_id,omitempty"`
	Role        string          `json:"role,omitempty" doc:"user or assistant."`
	Content     string          `json:"content,omitempty"`
	ContentType string          `json:"content_type,omitempty"`
	ToolID      string          `json:"tool_id,omitempty"`
	ToolName    string          `json:"tool_name,omitempty"`
	ToolTitle   string          `json:"tool_title,omitempty" doc:"What the tool call does, for people."`
	ToolKind    string          `json:"tool_kind,omitempty" doc:"read, edit, delete, move, search, execute, think, fetch or other."`
	ToolStatus  string          `json:"tool_status,omitempty" doc:"pending, in_progress, completed or failed."`
	ToolInput   json.RawMessage `json:"tool_input,omitempty"`
	ToolData    *ToolDetails    `json:"tool_data,omitempty"`
	ResultFor   string          `json:"tool_result_for_id,omitempty" doc:"tool_result: the tool_id of the call."`
	Result      string          `json:"tool_result_content,omitempty"`
	RefusedBy   string          `json:"refused_by,omitempty" doc:"What refused the tool call, as decided_by of an approval. Absent if the call failed for another reason."`
	Refusal     string          `json:"refusal,omitempty" doc:"The reason, for people."`
	ParentID    string          `json:"parent_tool_use_id" doc:"The tool call that contains it, such as that of a sub-agent. Empty: none."`
	Subtype     string          `json:"subtype,omitempty" doc:"What a notice is about, such as worktree."`
	Truncated   bool            `json:"truncated,omitempty" doc:"A text is cut; getConversation has the whole text."`
	Attachments []Attachment    `json:"attachments,omitempty" doc:"Content that is not text. attachment.get returns its bytes."`

	Meta json.RawMessage `json:"_meta,omitempty" doc:"Of a message or thought: the agent's own, at most 8 KiB; in data of getConversation."`
}

// A TextDelta is text that is being written.
type TextDelta struct {
	TurnIDs
	MessageID string `json:"message_id"`
	Role      string `json:"role" doc:"assistant"`
	Text      string `json:"delta"`
	Length    int    `json:"length,omitempty" doc:"The message's length including this delta, in UTF-16 code units, as JavaScript counts. Absent if the hub reads the text from the store again."`
	ParentID  string `json:"parent_tool_use_id,omitempty" doc:"The tool call of the sub-agent that writes it."`

	Meta json.RawMessage `json:"_meta,omitempty" doc:"The agent's own."`
}

// A DeltaEvent is text of a message that is being written.
type DeltaEvent struct{ TextDelta }

// A ThinkingEvent is text of a thought that is being written.
type ThinkingEvent struct{ TextDelta }

// An ApprovalEvent is a new question.
type ApprovalEvent struct {
	TurnIDs
	ApprovalID   string          `json:"approval_id"`
	CallID       string          `json:"call_id"`
	ToolUseID    string          `json:"tool_use_id" doc:"The agent's id of the waiting tool call. Empty: none."`
	ParentID     string          `json:"parent_tool_use_id,omitempty" doc:"The tool call of the sub-agent that asks."`
	Type         string          `json:"type" doc:"function_call or human_contact."`
	ToolName     string          `json:"tool_name"`
	ToolInput    json.RawMessage `json:"tool_input,omitempty"`
	ToolKind     string          `json:"tool_kind,omitempty" doc:"read, edit, delete, move, search, execute, think, fetch or other."`
	Editable     bool            `json:"input_editable" doc:"Whether a decision may have updated_input."`
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
	Count        int             `json:"count" doc:"Always 1."` // HumanLayer, June 2025
	Stale        bool            `json:"stale,omitempty" doc:"The process that asked is gone. Approving resumes the session."`
	Reopens      string          `json:"reopens,omitempty" doc:"The approval that this one repeats."`
	Reopened     string          `json:"reopened,omitempty" doc:"Why Duet asks again, for people."`
	Replayed     bool            `json:"replayed,omitempty" doc:"A pending question that comes again."`
	Truncated    bool            `json:"truncated,omitempty" doc:"Parts were left out; getApproval has them."`
	*Elicitation
}

// A ResolvedEvent is the end of a question.
type ResolvedEvent struct {
	TurnIDs
	ApprovalID   string `json:"approval_id"`
	CallID       string `json:"call_id"`
	Type         string `json:"type" doc:"function_call or human_contact."`
	Approved     bool   `json:"approved"`
	Decision     string `json:"decision" doc:"The approval's status."`
	ResponseText string `json:"response_text"`
	Comment      string `json:"comment,omitempty"`
	Option       string `json:"option,omitempty" doc:"The chosen option."`
	DecidedBy    string `json:"decided_by" doc:"As decided_by of an approval."`
	DecidedIn    string `json:"decided_in,omitempty" doc:"The client in which the user decided."`
	Title        string `json:"title,omitempty"`
	ToolName     string `json:"tool_name,omitempty"`
	ToolUseID    string `json:"tool_use_id,omitempty"`
	Edited       bool   `json:"input_was_edited,omitempty"`
	Explanation  string `json:"explanation,omitempty" doc:"Describes the rule or mode that decided."`
}

// A SettingsEvent is a change of a conversation's settings. Absent members did not change.
type SettingsEvent struct {
	TurnIDs
	EventType          string   `json:"event_type" doc:"settings_updated, native_session (the agent's own session) or mode (the agent's mode)."`
	Title              *string  `json:"title,omitempty"`
	Mode               *string  `json:"permission_mode,omitempty"`
	Model              *string  `json:"model,omitempty"`
	AutoAcceptEdits    *bool    `json:"auto_accept_edits,omitempty"`
	SkipPermissions    *bool    `json:"dangerously_skip_permissions,omitempty"`
	SkipUntil          string   `json:"dangerously_skip_permissions_expires_at,omitempty"`
	Archived           *bool    `json:"archived,omitempty"`
	Reason             string   `json:"reason,omitempty"`
	NativeSession      string   `json:"claude_session_id,omitempty" doc:"The agent's id of its session."`
	AgentMode          string   `json:"agent_mode,omitempty"`
	AgentModes         []string `json:"agent_modes,omitempty" doc:"The ids of all modes of the agent."`
	SessionWasReplaced bool     `json:"session_was_replaced,omitempty" doc:"The agent could not continue its session and began another one."`
	Forked             bool     `json:"forked,omitempty" doc:"The agent forked its own session."`

	AgentModeChoices []domain.Choice   `json:"agent_mode_choices,omitempty" doc:"All modes of the agent, with their names."`
	Options          map[string]string `json:"options,omitempty" doc:"The agent's other settings, by their ids."`
	RequestedAgent   *string           `json:"requested_agent,omitempty"`
}

// An AgentSessionEvent has the changed parts of an agent's report about its session, each whole.
type AgentSessionEvent struct {
	TurnIDs
	AgentSession
	Truncated bool `json:"truncated,omitempty" doc:"getSessionState has the rest."`
}

// A PlanEvent is an agent's plan, whole.
type PlanEvent struct {
	TurnIDs
	Entries []domain.PlanEntry `json:"entries"`
}

// A UsageEvent is an agent's report of tokens, context and cost.
type UsageEvent struct {
	TurnIDs
	InputTokens      int64   `json:"input_tokens"`
	OutputTokens     int64   `json:"output_tokens"`
	CacheReadTokens  int64   `json:"cache_read_tokens,omitempty"`
	CacheWriteTokens int64   `json:"cache_write_tokens,omitempty"`
	ContextUsed      int64   `json:"context_used,omitempty" doc:"Tokens in the context."`
	ContextSize      int64   `json:"context_size,omitempty" doc:"Tokens that fit into the context."`
	CostUSD          float64 `json:"cost_usd,omitempty"`

	Meta json.RawMessage `json:"_meta,omitempty" doc:"The agent's own."`
}

// A DiffEvent is a file that a turn changed.
type DiffEvent struct {
	TurnIDs
	Path      string `json:"path"`
	Diff      string `json:"diff" doc:"The change since the turn began, as a unified diff."`
	Added     int    `json:"added" doc:"Number of added lines."`
	Removed   int    `json:"removed"`
	Binary    bool   `json:"binary,omitempty"`
	Truncated bool   `json:"truncated,omitempty" doc:"The diff is cut; change.list has all of it."`
}

// A TerminalEvent is output of a terminal.
type TerminalEvent struct {
	TerminalID string `json:"terminal_id"`
	TaskID     string `json:"task_id,omitempty" doc:"The task whose agent runs the terminal."`
	Data       string `json:"data"`
	Encoding   string `json:"encoding" doc:"Of data: utf-8 or base64."`
}

// Turn implements [Event]. It has only the id of the task whose agent runs the terminal.
func (e *TerminalEvent) Turn() TurnIDs { return TurnIDs{TaskID: e.TaskID} }

// A TerminalExitEvent is the end of a terminal's program.
type TerminalExitEvent struct {
	TerminalID string `json:"terminal_id"`
	TaskID     string `json:"task_id,omitempty" doc:"The task whose agent ran the terminal."`
	ExitCode   int    `json:"exit_code"`
	Signal     string `json:"signal,omitempty" doc:"The signal that ended the program."`
}

// Turn implements [Event]. It has only the id of the task whose agent ran the terminal.
func (e *TerminalExitEvent) Turn() TurnIDs { return TurnIDs{TaskID: e.TaskID} }

// A ProgressEvent is a report of a task's progress. The report may have other members, too.
type ProgressEvent struct {
	TurnIDs
	Percent        *float64 `json:"percent,omitempty" doc:"0 to 100."`
	Message        string   `json:"message,omitempty"`
	CompletedSteps *int     `json:"completed_steps,omitempty"`
	TotalSteps     *int     `json:"total_steps,omitempty"`
}

// An ErrorEvent is an error that does not end the turn. The report may have other members, too.
type ErrorEvent struct {
	TurnIDs
	Code    string `json:"code" doc:"Such as MCP_SERVER_FAILED."`
	Message string `json:"message"`
}

// An UpdateEvent is an agent's update of a kind that the hub does not know.
type UpdateEvent struct {
	TurnIDs
	Update json.RawMessage `json:"update" doc:"As the agent sent it."`
}

// A GateEvent is the result of a gate.
type GateEvent struct {
	TurnIDs
	GateResult
	Iteration     int `json:"iteration" doc:"The turn of the work, from 1."`
	MaxIterations int `json:"max_iterations"`
}

// A BuildEvent is the start or the end of a build of the project.
type BuildEvent struct {
	ofNoTurn
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

// A LaggedEvent says what was left out because the client did not keep up.
type LaggedEvent struct {
	ofNoTurn
	*SkippedEvents
	*SkippedOutput
}

// SkippedEvents are deltas that a subscription left out.
type SkippedEvents struct {
	From int64 `json:"from_seq"`
	To   int64 `json:"to_seq"`
}

// SkippedOutput is output that a terminal left out.
type SkippedOutput struct {
	TerminalID string `json:"terminal_id"`
	Dropped    int    `json:"dropped_bytes"`
}

// A LogDamagedEvent names events that cannot be read.
type LogDamagedEvent struct {
	ofNoTurn
	From    int64  `json:"from_seq,omitempty"`
	To      int64  `json:"to_seq,omitempty"`
	Message string `json:"message"`
}

// A SecretEvent asks for an API key.
type SecretEvent struct {
	TurnIDs
	RequestID string `json:"request_id"`
	Service   string `json:"service" doc:"Whose key it is, as in [keys.NAME]."`
	Agent     string `json:"agent"`
}

// A SilentEvent says that an agent gives no sign of life, or works again.
type SilentEvent struct {
	TurnIDs
	Since     time.Time `json:"since" doc:"The agent's last sign of life."`
	Note      string    `json:"note,omitempty" doc:"What the agent has written to its stderr since then."`
	ToolID    string    `json:"tool_id,omitempty" doc:"The running tool call."`
	ToolTitle string    `json:"tool_title,omitempty"`
	Ended     bool      `json:"ended" doc:"The agent works again."`
}

// A DeletedEvent says that turns of a session were deleted.
type DeletedEvent struct {
	ofNoTurn
	ThreadID   string   `json:"thread_id"`
	SessionIDs []string `json:"session_ids"`
	TaskIDs    []string `json:"task_ids"`
	Turns      []string `json:"turns" doc:"The numbers of the turns, such as 12.3."`
	Kept       int      `json:"kept,omitempty" doc:"Number of sessions that stay because others were forked from them."`
}

// A TriggerExecutedEvent is an execution of a trigger. It has the ids of the turn that it started.
type TriggerExecutedEvent struct {
	*TurnIDs
	Execution int64  `json:"execution_id"`
	Trigger   string `json:"trigger"`
	EventType string `json:"event_type"`
	Action    string `json:"action"`
	Status    string `json:"status"`
	Message   string `json:"message,omitempty" doc:"The text of a notification."`
	Channel   string `json:"channel,omitempty"`
	Approval  string `json:"approval_id,omitempty" doc:"The question that the trigger waits for."`
	Error     string `json:"error,omitempty"`
}

// Turn implements [Event].
func (e *TriggerExecutedEvent) Turn() TurnIDs { return Value(e.TurnIDs) }

// An IterationEvent is the start of a turn of work that has gates.
type IterationEvent struct {
	TurnIDs
	Iteration     int      `json:"iteration" doc:"From 1."`
	MaxIterations int      `json:"max_iterations"`
	Gates         []string `json:"gates"`
}

// A GateStartEvent is the start of a gate.
type GateStartEvent struct {
	TurnIDs
	Gate      string `json:"gate"`
	Iteration int    `json:"iteration"`
}

// A GatesEndedEvent is the end of work that has gates.
type GatesEndedEvent struct {
	TurnIDs
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

// A DecidedEvent is a decision about a change, or its withdrawal.
type DecidedEvent struct {
	TurnIDs
	Path     string `json:"path"`
	Decision string `json:"decision" doc:"accept, revert or reopen."`
	Hunk     string `json:"hunk,omitempty" doc:"The hunk's id. Absent: the whole file."`
}

// A QueueEvent is a change of a conversation's queue.
type QueueEvent struct {
	TurnIDs
	Content   *string  `json:"content,omitempty" doc:"The prompt's new text, if it was edited."`
	Truncated bool     `json:"truncated,omitempty" doc:"content is cut."`
	Order     []string `json:"order" doc:"The conversation's queued sessions, the next one first."`
}

// A HubSilentEvent says that the hub does not answer. The editor's process sends it.
type HubSilentEvent struct {
	ofNoTurn
	Message string `json:"message"`
}

// A HubAnswersEvent says that the hub answers again. The editor's process sends it.
type HubAnswersEvent struct {
	ofNoTurn
	Message string `json:"message"`
}

// An UnknownEvent is an event of a kind that this program does not know, such as one of a newer hub.
type UnknownEvent struct {
	TurnIDs
	Type string          `json:"-"`
	Data json.RawMessage `json:"-"` // as it came
}

// Kind implements [Event].
func (e *UnknownEvent) Kind() string { return e.Type }
