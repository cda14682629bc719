package protocol

import (
	"encoding/json"
	"slices"
	"time"

	"github.com/duet-rpc/duet-rpc/frame"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/server"
)

// A Client is the form of events for one kind of client. A connection's form is chosen when it
// subscribes.
type Client struct {
	// TellsSeq: the reply to Subscribe has the number of the last event before the subscription.
	TellsSeq bool
	// ShowsNotes: conversations include notes; see [domain.IsNote].
	ShowsNotes bool

	event     func(subscription string, seq int64, e eventBody) any
	heartbeat func(subscription string, h heartbeat) any
}

// LSP is the form for editors, with the framing of the Language Server Protocol: notifications.
var LSP = &Client{
	TellsSeq: true, ShowsNotes: true,
	event: func(subscription string, seq int64, e eventBody) any {
		return notification("event", eventParams{subscription, seq, e})
	},
	heartbeat: func(subscription string, h heartbeat) any {
		h.SubscriptionID = subscription
		return notification("heartbeat", h)
	},
}

// HumanLayer is the form for HumanLayer's clients: a line per event, as a result without an id.
var HumanLayer = &Client{
	event: func(_ string, seq int64, e eventBody) any {
		e.Seq = seq
		return unaskedResult{"2.0", eventParams{Event: e}}
	},
	heartbeat: func(_ string, h heartbeat) any { return unaskedResult{"2.0", h} },
}

// Of returns the form for a connection: HumanLayer for NDJSON, LSP for LSP framing.
func Of(conn *server.Conn) *Client {
	if conn.Framing() == frame.LSP {
		return LSP
	}
	return HumanLayer
}

// Event returns an event as a message of a subscription, which may be "". data is the result of
// [Data], or a shortened form of it.
func (c *Client) Event(subscription string, e domain.Event, data json.RawMessage) any {
	return c.event(subscription, e.Seq, eventBody{Type: TypeOf(e.Payload.Kind()), Timestamp: e.Time.UTC(), Data: data})
}

// Heartbeat returns the heartbeat message of a subscription.
func (c *Client) Heartbeat(subscription string) any {
	return c.heartbeat(subscription, heartbeat{Type: "heartbeat", Message: "Connection alive"})
}

// A Notification is a JSON-RPC notification.
type Notification struct {
	JSONRPC string `json:"jsonrpc"`
	Method  string `json:"method"`
	Params  any    `json:"params"`
}

func notification(method string, params any) *Notification {
	return &Notification{"2.0", method, params}
}

// An unaskedResult is a result without an id, which HumanLayer uses as a notification.
type unaskedResult struct {
	JSONRPC string `json:"jsonrpc"`
	Result  any    `json:"result"`
}

// An eventBody is the part of an event that all clients get. Only HumanLayer's form uses Seq.
type eventBody struct {
	Type      string          `json:"type"`
	Timestamp time.Time       `json:"timestamp"`
	Seq       int64           `json:"seq,omitempty"`
	Data      json.RawMessage `json:"data"`
}

type eventParams struct {
	SubscriptionID string    `json:"subscription_id,omitempty"`
	Seq            int64     `json:"seq,omitempty"`
	Event          eventBody `json:"event"`
}

type heartbeat struct {
	SubscriptionID string `json:"subscription_id,omitempty"`
	Type           string `json:"type"`
	Message        string `json:"message"`
}

// TypeOf returns the clients' name for a kind of event.
func TypeOf(kind domain.EventKind) string { return eventTypes[kind] }

// Data returns the data of an event for clients, as JSON.
func Data(e domain.Event) json.RawMessage { return encode(data(e)) }

// data returns an event's payload with the members that clients see.
func data(e domain.Event) any {
	ids := idsOf(e.Ref)
	switch p := e.Payload.(type) {
	case domain.TurnStateChanged:
		return statusData{
			ids: ids, ThreadID: p.SessionUUID, OldStatus: StatusOf(p.From), NewStatus: StatusOf(p.To), OldState: string(p.From), State: string(p.To),
			ParentSessionID: p.ParentHumanLayerSession, Title: p.Title, Agent: p.Agent, Reason: p.Reason, Error: p.Error, ErrorCode: p.ErrorCode, StopReason: p.StopReason,
			AuthMethods: p.SignIn,
		}
	case domain.MessageDelta:
		return deltaData{ids, p.Key, "assistant", p.Text, p.Length, p.ParentID, p.Meta}
	case domain.MessageAdded:
		return messageData(ids, p)
	case domain.ToolCallChanged:
		return toolCallData(ids, p)
	case domain.ApprovalRequested:
		answers := domain.AnswersOf(p.Type, p.Elicitation, p.Options)
		return requestedData{
			ids: ids, ApprovalID: p.ApprovalID, CallID: p.CallID, ToolUseID: p.ToolUseID, ParentID: p.ParentID, Type: p.Type, ToolName: p.Tool, ToolInput: p.Input,
			ToolKind: p.ToolKind, Editable: p.InputEditable, Ambiguity: p.Ambiguity, Title: p.Title, Subject: p.Subject, Options: optionsJSON(p.Options), OptionsOnly: answers.OptionsOnly, Declinable: answers.Declinable, Paths: p.Paths,
			Diffs: p.Diffs, Plan: p.Plan, Details: p.Details, Rules: RulePreviewsOf(p.Rule), TakesComment: p.TakesComment, Count: 1, Stale: p.Stale, Reopens: p.Reopens, Reopened: p.Reopened, Replayed: p.Replayed, Truncated: p.Truncated,
			Elicitation: ElicitationOf(p.Elicitation),
		}
	case domain.ApprovalResolved:
		return resolvedData{
			ids: ids, ApprovalID: p.ApprovalID, CallID: p.CallID, Type: p.Type, Approved: p.Status == domain.ApprovalApproved, Decision: p.Status,
			ResponseText: p.Response, Comment: p.Comment, Option: p.Option, DecidedBy: p.DecidedBy, DecidedIn: p.DecidedIn, Title: p.Title, ToolName: p.Tool,
			ToolUseID: p.ToolUseID, Edited: p.InputEdited, Explanation: p.Explanation,
		}
	case domain.SettingsChanged:
		return settingsData{
			ids: ids, EventType: "settings_updated", Title: p.Title, Mode: p.Mode, Model: p.Model, AutoAcceptEdits: p.AutoAcceptEdits,
			SkipPermissions: p.SkipPermissions, SkipUntil: rfc3339(p.SkipUntil), Archived: p.Archived, Reason: p.Reason,
			Options: p.Options, RequestedAgent: p.Agent,
		}
	case domain.NativeSessionChanged:
		return settingsData{ids: ids, EventType: "native_session", NativeSession: p.NativeSession, SessionWasReplaced: p.Replaced, Forked: p.Forked}
	case domain.AgentModeChanged:
		return settingsData{ids: ids, EventType: "mode", AgentMode: p.Mode, AgentModes: p.Modes, AgentModeChoices: p.Choices}
	case domain.AgentSessionChanged:
		return agentSessionData{ids, AgentSessionOf(p.AgentSession), p.Truncated}
	case domain.PlanChanged:
		return planData{ids, List(p.Entries)}
	case domain.UsageReported:
		return usageData{ids, usage(p)}
	case domain.FileChanged:
		return diffData{ids, p.Path, p.Diff, p.Added, p.Removed, p.Binary, p.Truncated}
	case domain.ChangeDecided:
		return decidedData{ids, p.Path, p.Decision, p.Hunk}
	case domain.QueueChanged:
		return queueData{ids, p.Text, p.Truncated, p.Order}
	case domain.ProgressReported:
		return withIDs(ids, p.Report)
	case domain.AgentErrorReported:
		return withIDs(ids, p.Report)
	case domain.AgentUpdated:
		return updateData{ids, p.Update}
	case domain.AgentSilent:
		return silentData{ids, p.Since.UTC(), p.Note, p.ToolID, p.Tool, p.Ended}
	case domain.TriggerExecuted:
		if e.Ref == (domain.TurnRef{}) {
			return triggerDataOf(nil, p)
		}
		return triggerDataOf(&ids, p)
	case domain.SessionDeleted:
		return deletedDataOf(p)
	case domain.TerminalPrinted:
		return terminalOutput(p)
	case domain.TerminalExited:
		return terminalExit(p)
	case domain.TerminalLagged:
		return terminalLagged(p)
	case domain.SecretRequested:
		return secretData{ids, p.RequestID, p.Service, p.Agent}
	case domain.BuildProgressed:
		return buildDataOf(p)
	case domain.IterationStarted, domain.GateStarted, domain.GateChecked, domain.LoopEnded:
		return gatesData(ids, p)
	case domain.Lagged:
		return laggedData(p)
	case domain.LogDamaged:
		return damagedData(p)
	}
	return struct{}{}
}

// ids name a run in an event.
type ids struct {
	SessionID string `json:"session_id"`
	RunID     string `json:"run_id"`
	TaskID    string `json:"task_id"`
}

func idsOf(r domain.TurnRef) ids {
	return ids{r.HumanLayerSession, r.HumanLayerRun, domain.TaskName(r.Task)}
}

// withIDs returns an object with the ids of a run before its own members.
func withIDs(run ids, object json.RawMessage) json.RawMessage {
	b, _ := json.Marshal(run) // strings: it cannot fail
	if len(object) > 2 && object[0] == '{' {
		b = append(append(b[:len(b)-1], ','), object[1:]...)
	}
	return b
}

func messageData(ids ids, p domain.MessageAdded) conversationData {
	contentType := p.Type
	if p.Type == "message" {
		contentType = "text"
	}
	return conversationData{
		ids: ids, NativeID: p.NativeSession, EventType: p.Type, MessageID: p.Key, ParentID: p.ParentID, Role: p.Role, Content: p.Text, ContentType: contentType,
		Subtype: p.Subtype, Truncated: p.Truncated, Attachments: attachments(p.Blocks), Meta: p.Meta,
	}
}

func toolCallData(ids ids, p domain.ToolCallChanged) conversationData {
	d := conversationData{
		ids: ids, NativeID: p.NativeSession, EventType: "tool_call", ContentType: "tool_use", ToolID: p.ID, ToolName: p.Name, ToolTitle: p.Title,
		ToolKind: p.ToolKind, ToolStatus: p.Status, ToolInput: p.Input, ParentID: p.ParentID, Truncated: p.Truncated,
	}
	if p.Details != nil {
		d.ToolData, d.RefusedBy, d.Refusal = toolDetailsOf(*p.Details), p.Details.RefusedBy, p.Details.Refusal
	}
	if p.Ended {
		d.EventType, d.ContentType, d.Role, d.ResultFor, d.Result = "tool_result", "tool_result", "user", p.ID, p.Result
	}
	return d
}

func rfc3339(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339)
}

type statusData struct {
	ids
	ThreadID        string `json:"thread_id"`
	OldStatus       string `json:"old_status"` // empty: it is new
	NewStatus       string `json:"new_status"`
	OldState        string `json:"old_state"`
	State           string `json:"state"`
	ParentSessionID string `json:"parent_session_id,omitempty"`
	Title           string `json:"title,omitempty"`
	Agent           string `json:"agent,omitempty"`
	Reason          string `json:"reason,omitempty"`
	Error           string `json:"error,omitempty"`
	ErrorCode       string `json:"error_code,omitempty"`
	StopReason      string `json:"stop_reason,omitempty"`

	AuthMethods []domain.AuthMethod `json:"auth_methods,omitempty"`
}

type deltaData struct {
	ids
	MessageID string `json:"message_id"`
	Role      string `json:"role"`
	Delta     string `json:"delta"`
	Length    int    `json:"length,omitempty"`
	ParentID  string `json:"parent_tool_use_id,omitempty"`

	Meta json.RawMessage `json:"_meta,omitempty"`
}

type conversationData struct {
	ids
	NativeID    string          `json:"claude_session_id"`
	EventType   string          `json:"event_type"`
	MessageID   string          `json:"message_id,omitempty"`
	Role        string          `json:"role,omitempty"`
	Content     string          `json:"content,omitempty"`
	ContentType string          `json:"content_type,omitempty"`
	ToolID      string          `json:"tool_id,omitempty"`
	ToolName    string          `json:"tool_name,omitempty"`
	ToolTitle   string          `json:"tool_title,omitempty"`
	ToolKind    string          `json:"tool_kind,omitempty"`
	ToolStatus  string          `json:"tool_status,omitempty"`
	ToolInput   json.RawMessage `json:"tool_input,omitempty"`
	ToolData    *toolDetails    `json:"tool_data,omitempty"`
	ResultFor   string          `json:"tool_result_for_id,omitempty"`
	Result      string          `json:"tool_result_content,omitempty"`
	RefusedBy   string          `json:"refused_by,omitempty"`
	Refusal     string          `json:"refusal,omitempty"`
	ParentID    string          `json:"parent_tool_use_id"`
	Subtype     string          `json:"subtype,omitempty"`
	Truncated   bool            `json:"truncated,omitempty"`
	Attachments []Attachment    `json:"attachments,omitempty"`

	Meta json.RawMessage `json:"_meta,omitempty"`
}

type requestedData struct {
	ids
	ApprovalID   string          `json:"approval_id"`
	CallID       string          `json:"call_id"`
	ToolUseID    string          `json:"tool_use_id"`
	ParentID     string          `json:"parent_tool_use_id,omitempty"`
	Type         string          `json:"type"`
	ToolName     string          `json:"tool_name"`
	ToolInput    json.RawMessage `json:"tool_input,omitempty"`
	ToolKind     string          `json:"tool_kind,omitempty"`
	Editable     bool            `json:"input_editable"`
	Ambiguity    string          `json:"input_ambiguity,omitempty"`
	Title        string          `json:"title,omitempty"`
	Subject      string          `json:"subject,omitempty"`
	Options      json.RawMessage `json:"options,omitempty"`
	OptionsOnly  bool            `json:"options_only,omitempty"`
	Declinable   bool            `json:"declinable,omitempty"`
	Paths        []string        `json:"paths,omitempty"`
	Diffs        []domain.Diff   `json:"diffs,omitempty"`
	Plan         string          `json:"plan,omitempty"`
	Details      string          `json:"details,omitempty"`
	Rules        RulePreviews    `json:"rule_preview,omitempty"`
	TakesComment bool            `json:"takes_comment,omitempty"`
	Count        int             `json:"count"` // HumanLayer, June 2025
	Stale        bool            `json:"stale,omitempty"`
	Reopens      string          `json:"reopens,omitempty"`
	Reopened     string          `json:"reopened,omitempty"`
	Replayed     bool            `json:"replayed,omitempty"`
	Truncated    bool            `json:"truncated,omitempty"`
	*Elicitation
}

type resolvedData struct {
	ids
	ApprovalID   string `json:"approval_id"`
	CallID       string `json:"call_id"`
	Type         string `json:"type"`
	Approved     bool   `json:"approved"`
	Decision     string `json:"decision"` // the approval's status
	ResponseText string `json:"response_text"`
	Comment      string `json:"comment,omitempty"`
	Option       string `json:"option,omitempty"`
	DecidedBy    string `json:"decided_by"`
	DecidedIn    string `json:"decided_in,omitempty"`
	Title        string `json:"title,omitempty"`
	ToolName     string `json:"tool_name,omitempty"`
	ToolUseID    string `json:"tool_use_id,omitempty"`
	Edited       bool   `json:"input_was_edited,omitempty"`
	Explanation  string `json:"explanation,omitempty"`
}

type settingsData struct {
	ids
	EventType          string   `json:"event_type"`
	Title              *string  `json:"title,omitempty"`
	Mode               *string  `json:"permission_mode,omitempty"`
	Model              *string  `json:"model,omitempty"`
	AutoAcceptEdits    *bool    `json:"auto_accept_edits,omitempty"`
	SkipPermissions    *bool    `json:"dangerously_skip_permissions,omitempty"`
	SkipUntil          string   `json:"dangerously_skip_permissions_expires_at,omitempty"`
	Archived           *bool    `json:"archived,omitempty"`
	Reason             string   `json:"reason,omitempty"`
	NativeSession      string   `json:"claude_session_id,omitempty"`
	AgentMode          string   `json:"agent_mode,omitempty"`
	AgentModes         []string `json:"agent_modes,omitempty"`
	SessionWasReplaced bool     `json:"session_was_replaced,omitempty"`
	Forked             bool     `json:"forked,omitempty"`

	AgentModeChoices []domain.Choice   `json:"agent_mode_choices,omitempty"`
	Options          map[string]string `json:"options,omitempty"`
	RequestedAgent   *string           `json:"requested_agent,omitempty"`
}

type planData struct {
	ids
	Entries []domain.PlanEntry `json:"entries"`
}

type usageData struct {
	ids
	usage
}

type usage struct {
	InputTokens      int64   `json:"input_tokens"`
	OutputTokens     int64   `json:"output_tokens"`
	CacheReadTokens  int64   `json:"cache_read_tokens,omitempty"`
	CacheWriteTokens int64   `json:"cache_write_tokens,omitempty"`
	ContextUsed      int64   `json:"context_used,omitempty"`
	ContextSize      int64   `json:"context_size,omitempty"`
	CostUSD          float64 `json:"cost_usd,omitempty"`

	Meta json.RawMessage `json:"_meta,omitempty"`
}

type diffData struct {
	ids
	Path      string `json:"path"`
	Diff      string `json:"diff"`
	Added     int    `json:"added"`
	Removed   int    `json:"removed"`
	Binary    bool   `json:"binary,omitempty"`
	Truncated bool   `json:"truncated,omitempty"`
}

type decidedData struct {
	ids
	Path     string `json:"path"`
	Decision string `json:"decision"`
	Hunk     string `json:"hunk,omitempty"`
}

type queueData struct {
	ids
	Content   *string  `json:"content,omitempty"`
	Truncated bool     `json:"truncated,omitempty"`
	Order     []string `json:"order"`
}

type updateData struct {
	ids
	Update json.RawMessage `json:"update"`
}

type silentData struct {
	ids
	Since     time.Time `json:"since"`
	Note      string    `json:"note,omitempty"`
	ToolID    string    `json:"tool_id,omitempty"`
	ToolTitle string    `json:"tool_title,omitempty"`
	Ended     bool      `json:"ended"`
}

type terminalOutput struct {
	TerminalID string `json:"terminal_id"`
	TaskID     string `json:"task_id,omitempty"`
	Data       string `json:"data"`
	Encoding   string `json:"encoding"`
}

type terminalExit struct {
	TerminalID string `json:"terminal_id"`
	TaskID     string `json:"task_id,omitempty"`
	ExitCode   int    `json:"exit_code"`
	Signal     string `json:"signal,omitempty"`
}

type terminalLagged struct {
	TerminalID string `json:"terminal_id"`
	Dropped    int    `json:"dropped_bytes"`
}

type secretData struct {
	ids
	RequestID string `json:"request_id"`
	Service   string `json:"service"`
	Agent     string `json:"agent"`
}

type laggedData struct {
	From int64 `json:"from_seq"`
	To   int64 `json:"to_seq"`
}

type damagedData struct {
	From    int64  `json:"from_seq,omitempty"`
	To      int64  `json:"to_seq,omitempty"`
	Message string `json:"message"`
}

// triggerData is the data of a trigger's execution, with the ids of the run that it started.
type triggerData struct {
	*ids
	Execution int64  `json:"execution_id"`
	Trigger   string `json:"trigger"`
	EventType string `json:"event_type"`
	Action    string `json:"action"`
	Status    string `json:"status"`
	Message   string `json:"message,omitempty"`
	Channel   string `json:"channel,omitempty"`
	Approval  string `json:"approval_id,omitempty"`
	Error     string `json:"error,omitempty"`
}

func triggerDataOf(run *ids, p domain.TriggerExecuted) triggerData {
	return triggerData{
		ids:       run,
		Execution: p.Execution, Trigger: p.Trigger, EventType: p.EventType, Action: p.Action, Status: p.Status,
		Message: p.Message, Channel: p.Channel, Approval: p.Approval, Error: p.Error,
	}
}

// deletedData is the data of session_deleted.
type deletedData struct {
	ThreadID   string   `json:"thread_id"`
	SessionIDs []string `json:"session_ids"`
	TaskIDs    []string `json:"task_ids"`
	Kept       int      `json:"kept,omitempty"`
}

func deletedDataOf(p domain.SessionDeleted) deletedData {
	d := deletedData{ThreadID: p.SessionUUID, Kept: p.Kept}
	for _, r := range p.Turns {
		d.SessionIDs, d.TaskIDs = append(d.SessionIDs, r.HumanLayerSession), append(d.TaskIDs, domain.TaskName(r.Task))
	}
	return d
}

// A GateResult is the result of a gate, for clients.
type GateResult struct {
	Gate       string              `json:"gate" doc:"The command line, or the name of [[gates]]."`
	Passed     bool                `json:"passed"`
	Reason     string              `json:"reason,omitempty" doc:"Why it did not pass, such as exit status 2."`
	Findings   []domain.Diagnostic `json:"findings" doc:"Diagnostics in the output, at most 50."`
	Errors     int                 `json:"errors,omitempty" doc:"Total number of errors."`
	Warnings   int                 `json:"warnings,omitempty"`
	Output     string              `json:"output,omitempty" doc:"The first and last lines of the output of a gate that failed."`
	DurationMS int64               `json:"duration_ms"`
}

// GateResultOf converts the result of a gate for clients.
func GateResultOf(r domain.GateResult) GateResult {
	return GateResult{r.Gate, r.Passed, r.Reason, List(r.Findings), r.Errors, r.Warnings, r.Output, r.Duration.Milliseconds()}
}

// GateResultsOf converts results of gates for clients. The list is never nil.
func GateResultsOf(list []domain.GateResult) []GateResult {
	out := make([]GateResult, 0, len(list))
	for _, r := range list {
		out = append(out, GateResultOf(r))
	}
	return out
}

type iterationData struct {
	ids
	Iteration     int      `json:"iteration"`
	MaxIterations int      `json:"max_iterations"`
	Gates         []string `json:"gates"`
}

type gateStartData struct {
	ids
	Gate      string `json:"gate"`
	Iteration int    `json:"iteration"`
}

type gateData struct {
	ids
	GateResult
	Iteration     int `json:"iteration"`
	MaxIterations int `json:"max_iterations"`
}

type gatesEndedData struct {
	ids
	State         string   `json:"gates_state"`
	Reason        string   `json:"reason,omitempty"`
	Iteration     int      `json:"iteration"`
	MaxIterations int      `json:"max_iterations"`
	Failing       []string `json:"failing,omitempty"`
}

// gatesData returns the data of an event about gates.
func gatesData(ids ids, payload domain.Payload) any {
	switch p := payload.(type) {
	case domain.IterationStarted:
		return iterationData{ids, p.Iteration, p.MaxIterations, p.Gates}
	case domain.GateStarted:
		return gateStartData{ids, p.Gate, p.Iteration}
	case domain.GateChecked:
		return gateData{ids, GateResultOf(p.GateResult), p.Iteration, p.MaxIterations}
	case domain.LoopEnded:
		return gatesEndedData{ids, p.State, p.Reason, p.Iteration, p.MaxIterations, p.Failing}
	}
	return struct{}{}
}

type buildData struct {
	BuildID     string              `json:"build_id"`
	Name        string              `json:"name"`
	Stage       string              `json:"stage"`
	Command     []string            `json:"command"`
	DurationMS  int64               `json:"duration_ms,omitempty"`
	Errors      int                 `json:"errors,omitempty"`
	Warnings    int                 `json:"warnings,omitempty"`
	Diagnostics []domain.Diagnostic `json:"diagnostics,omitempty"`
	Reason      string              `json:"reason,omitempty"`
}

func buildDataOf(p domain.BuildProgressed) buildData {
	d := buildData{
		BuildID: p.BuildID, Name: p.Name, Stage: p.Stage, Command: append([]string{}, p.Command...), DurationMS: p.Duration.Milliseconds(),
		Errors: p.Errors, Warnings: p.Warnings, Reason: p.Reason,
	}
	d.Diagnostics = p.Diagnostics
	return d
}

// Types of events on the wire (docs/protocol.md, "Events").
const (
	TypeStatus       = "session_status_changed"
	TypeConversation = "conversation_updated"
	TypeApproval     = "new_approval"
	TypeResolved     = "approval_resolved"
	TypeSettings     = "session_settings_changed"
	TypeDelta        = "message_delta"
	TypeThinking     = "thinking_delta"
	TypePlan         = "plan"
	TypeUsage        = "usage"
	TypeDiff         = "diff_updated"
	TypeTerminal     = "terminal_output"
	TypeTerminalExit = "terminal_exit"
	TypeProgress     = "task_progress"
	TypeError        = "task_error"
	TypeUpdate       = "agent_update"
	TypeSilent       = "agent_silent"
	TypeLagged       = "lagged"
	TypeLogDamaged   = "log_damaged"
	TypeSecret       = "secret_requested"
	TypeAgentSession = "agent_session"
	TypeDeleted      = "session_deleted"
	TypeTrigger      = "trigger_executed"
	TypeBuild        = "build_progress"
	TypeIteration    = "iteration_start"
	TypeGateStart    = "gate_start"
	TypeGate         = "gate_result"
	TypeGatesEnded   = "gates_complete"
	TypeDecided      = "change_decided"
	TypeQueue        = "queue_changed"
)

// EventTypes are the types that a subscription can select.
var EventTypes = []string{
	TypeStatus, TypeConversation, TypeApproval, TypeResolved, TypeSettings,
	TypeDelta, TypeThinking, TypePlan, TypeUsage, TypeDiff, TypeTerminal, TypeTerminalExit,
	TypeProgress, TypeError, TypeUpdate, TypeGate, TypeBuild, TypeLagged, TypeLogDamaged, TypeSecret, TypeAgentSession,
	TypeSilent, TypeDeleted, TypeTrigger, TypeIteration, TypeGateStart, TypeGatesEnded, TypeDecided, TypeQueue,
}

// eventTypes maps kinds of events to the clients' names.
var eventTypes = map[domain.EventKind]string{
	domain.EventTurnState:         TypeStatus,
	domain.EventMessage:           TypeConversation,
	domain.EventToolCall:          TypeConversation,
	domain.EventDelta:             TypeDelta,
	domain.EventThoughtDelta:      TypeThinking,
	domain.EventApprovalRequested: TypeApproval,
	domain.EventApprovalResolved:  TypeResolved,
	domain.EventSettings:          TypeSettings,
	domain.EventNativeSession:     TypeSettings,
	domain.EventAgentMode:         TypeSettings,
	domain.EventAgentSession:      TypeAgentSession,
	domain.EventPlan:              TypePlan,
	domain.EventUsage:             TypeUsage,
	domain.EventFileChange:        TypeDiff,
	domain.EventChangeDecided:     TypeDecided,
	domain.EventQueue:             TypeQueue,
	domain.EventProgress:          TypeProgress,
	domain.EventAgentError:        TypeError,
	domain.EventAgentUpdate:       TypeUpdate,
	domain.EventAgentSilent:       TypeSilent,
	domain.EventTerminalOutput:    TypeTerminal,
	domain.EventTerminalExit:      TypeTerminalExit,
	domain.EventTerminalLagged:    TypeLagged,
	domain.EventSecretRequested:   TypeSecret,
	domain.EventSessionDeleted:    TypeDeleted,
	domain.EventTrigger:           TypeTrigger,
	domain.EventBuild:             TypeBuild,
	domain.EventIteration:         TypeIteration,
	domain.EventGateStart:         TypeGateStart,
	domain.EventGate:              TypeGate,
	domain.EventLoopEnded:         TypeGatesEnded,
	domain.EventLagged:            TypeLagged,
	domain.EventLogDamaged:        TypeLogDamaged,
}

// formerTypes are the names with which HumanLayer's terminal client of June 2025 subscribes. It
// expects the later names in the events themselves.
var formerTypes = map[string]string{
	TypeApproval: "approval_requested",
	TypeResolved: "approval_responded",
	TypeStatus:   "session_updated",
}

// Kinds returns the kinds of events with the given names, and ignores unknown names. Without names
// it returns nil, which selects all.
func Kinds(types []string) []domain.EventKind {
	if len(types) == 0 {
		return nil
	}
	kinds := []domain.EventKind{}
	for kind, name := range eventTypes {
		former, has := formerTypes[name]
		if slices.Contains(types, name) || has && slices.Contains(types, former) {
			kinds = append(kinds, kind)
		}
	}
	return kinds
}

type SubscribeParams struct {
	EventTypes    []string `json:"event_types,omitempty" doc:"Only these types. Absent or empty: all. approval_requested, approval_responded and session_updated are aliases of new_approval, approval_resolved and session_status_changed. Unknown types are ignored; with only unknown types the client gets nothing but heartbeats."`
	SessionID     string   `json:"session_id,omitempty" doc:"Only events of this session, by any id of the run."`
	RunID         string   `json:"run_id,omitempty" doc:"Alias of session_id. With both, only events of this run, which must belong to the session's conversation."`
	ID            string   `json:"subscription_id,omitempty" doc:"The id for this subscription, such as that of an earlier connection. Absent: a new id. It must be unique within the connection."`
	Since         *int64   `json:"since,omitempty" doc:"First replay the events after this seq. 0: all."`
	Notices       bool     `json:"notices,omitempty" doc:"The client shows the notice in the result to its user."`
	DeltaInterval *int64   `json:"delta_interval_ms,omitempty" doc:"Interval between message_delta or thinking_delta events of one message, in milliseconds: 16 to 1000, default 50. The first delta of a message is sent at once; later text is joined."`
}

// SubscribeResult is the result of Subscribe. Only clients with LSP framing get Seq.
type SubscribeResult struct {
	SubscriptionID string `json:"subscription_id"`
	Message        string `json:"message"`
	Notice         string `json:"notice,omitempty" doc:"With notices: says that sessions continued while no client followed events. Each user gets it once."`
	Seq            *int64 `json:"seq,omitempty" doc:"LSP framing: the seq after which the events begin; use it as since later."`
}

type UnsubscribeParams struct {
	SubscriptionID string `json:"subscription_id" doc:"The subscription_id from Subscribe."`
}

func (p UnsubscribeParams) Check() error { return NotEmpty("subscription_id", p.SubscriptionID) }
