package protocol

import (
	"encoding/json"
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

	event     func(subscription string, of domain.Event, e eventBody) any
	heartbeat func(subscription string, h heartbeat) any
}

// LSP is the form for editors, with the framing of the Language Server Protocol: notifications.
var LSP = &Client{
	TellsSeq: true, ShowsNotes: true,
	event: func(subscription string, of domain.Event, e eventBody) any {
		p := eventParams{SubscriptionID: subscription, Seq: of.Seq, Session: of.Session, Event: e}
		if of.Ref.Number > 0 {
			p.Turn = domain.Turn{Session: of.Session, Number: of.Ref.Number}.Name()
		}
		return Notify("event", p)
	},
	heartbeat: func(subscription string, h heartbeat) any {
		h.SubscriptionID = subscription
		return Notify("heartbeat", h)
	},
}

// HumanLayer is the form for HumanLayer's clients: a line per event, as a result without an id.
var HumanLayer = &Client{
	event: func(_ string, of domain.Event, e eventBody) any {
		e.Seq = of.Seq
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
	return c.event(subscription, e, eventBody{Type: TypeOf(e.Payload.Kind()), Timestamp: e.Time.UTC(), Data: data})
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

// Notify returns a notification.
func Notify(method string, params any) *Notification {
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
	Session        int64     `json:"session,omitempty"` // its number
	Turn           string    `json:"turn,omitempty"`    // its number, such as 12.3
	Event          eventBody `json:"event"`
}

type heartbeat struct {
	SubscriptionID string `json:"subscription_id,omitempty"`
	Type           string `json:"type"`
	Message        string `json:"message"`
}

// Data returns the data of an event for clients, as JSON.
func Data(e domain.Event) json.RawMessage { return encode(data(e)) }

// data returns an event as clients see it: an [Event], or the JSON of one that is a report of an
// executor.
func data(e domain.Event) any {
	turn := turnIDs(e.Ref)
	switch p := e.Payload.(type) {
	case domain.TurnStateChanged:
		return &StatusEvent{
			TurnIDs: turn, ThreadID: p.SessionUUID, OldStatus: StatusOf(p.From), NewStatus: StatusOf(p.To), OldState: string(p.From), State: string(p.To),
			ParentSessionID: p.ParentHumanLayerSession, Title: p.Title, Agent: p.Agent, Reason: p.Reason, Error: p.Error, ErrorCode: p.ErrorCode, StopReason: p.StopReason,
			AuthMethods: p.SignIn,
		}
	case domain.MessageDelta:
		return deltaEvent(p, TextDelta{turn, p.Key, "assistant", p.Text, p.Length, p.ParentID, p.Meta})
	case domain.MessageAdded:
		return messageEvent(turn, p)
	case domain.ToolCallChanged:
		return toolCallEvent(turn, p)
	case domain.ApprovalRequested:
		answers := domain.AnswersOf(p.Type, p.Elicitation, p.Options)
		return &ApprovalEvent{
			TurnIDs: turn, ApprovalID: p.ApprovalID, CallID: p.CallID, ToolUseID: p.ToolUseID, ParentID: p.ParentID, Type: p.Type, ToolName: p.Tool, ToolInput: p.Input,
			ToolKind: p.ToolKind, Editable: p.InputEditable, Ambiguity: p.Ambiguity, Title: p.Title, Subject: p.Subject, Options: p.Options, OptionsOnly: answers.OptionsOnly, Declinable: answers.Declinable, Paths: p.Paths,
			Diffs: p.Diffs, Plan: p.Plan, Details: p.Details, Rules: RulePreviewsOf(p.Rule), TakesComment: p.TakesComment, Count: 1, Stale: p.Stale, Reopens: p.Reopens, Reopened: p.Reopened, Replayed: p.Replayed, Truncated: p.Truncated,
			Elicitation: ElicitationOf(p.Elicitation),
		}
	case domain.ApprovalResolved:
		return &ResolvedEvent{
			TurnIDs: turn, ApprovalID: p.ApprovalID, CallID: p.CallID, Type: p.Type, Approved: p.Status == domain.ApprovalApproved, Decision: p.Status,
			ResponseText: p.Response, Comment: p.Comment, Option: p.Option, DecidedBy: p.DecidedBy, DecidedIn: p.DecidedIn, Title: p.Title, ToolName: p.Tool,
			ToolUseID: p.ToolUseID, Edited: p.InputEdited, Explanation: p.Explanation,
		}
	case domain.SettingsChanged:
		return &SettingsEvent{
			TurnIDs: turn, EventType: "settings_updated", Title: p.Title, Mode: p.Mode, Model: p.Model, AutoAcceptEdits: p.AutoAcceptEdits,
			SkipPermissions: p.SkipPermissions, SkipUntil: rfc3339(p.SkipUntil), Archived: p.Archived, Reason: p.Reason,
			Options: p.Options, RequestedAgent: p.Agent,
		}
	case domain.NativeSessionChanged:
		return &SettingsEvent{TurnIDs: turn, EventType: "native_session", NativeSession: p.NativeSession, SessionWasReplaced: p.Replaced, Forked: p.Forked}
	case domain.AgentModeChanged:
		return &SettingsEvent{TurnIDs: turn, EventType: "mode", AgentMode: p.Mode, AgentModes: p.Modes, AgentModeChoices: p.Choices}
	case domain.AgentSessionChanged:
		return &AgentSessionEvent{turn, AgentSessionOf(p.AgentSession), p.Truncated}
	case domain.PlanChanged:
		return &PlanEvent{turn, List(p.Entries)}
	case domain.UsageReported:
		return &UsageEvent{turn, p.InputTokens, p.OutputTokens, p.CacheReadTokens, p.CacheWriteTokens, p.ContextUsed, p.ContextSize, p.CostUSD, p.Meta}
	case domain.FileChanged:
		return &DiffEvent{turn, p.Path, p.Diff, p.Added, p.Removed, p.Binary, p.Truncated}
	case domain.ChangeDecided:
		return &DecidedEvent{turn, p.Path, p.Decision, p.Hunk}
	case domain.QueueChanged:
		return &QueueEvent{turn, p.Text, p.Truncated, p.Order}
	case domain.ProgressReported:
		return withIDs(turn, p.Report)
	case domain.AgentErrorReported:
		return withIDs(turn, p.Report)
	case domain.AgentUpdated:
		return &UpdateEvent{turn, p.Update}
	case domain.AgentSilent:
		return &SilentEvent{turn, p.Since.UTC(), p.Note, p.ToolID, p.Tool, p.Ended}
	case domain.TriggerExecuted:
		if e.Ref == (domain.TurnRef{}) {
			return triggerEvent(nil, p)
		}
		return triggerEvent(&turn, p)
	case domain.SessionDeleted:
		return deletedEvent(e.Session, p)
	case domain.TerminalPrinted:
		return &TerminalEvent{TerminalID: p.TerminalID, TaskID: p.TaskID, Data: p.Data, Encoding: p.Encoding}
	case domain.TerminalExited:
		return &TerminalExitEvent{TerminalID: p.TerminalID, TaskID: p.TaskID, ExitCode: p.ExitCode, Signal: p.Signal}
	case domain.TerminalLagged:
		return &LaggedEvent{SkippedOutput: &SkippedOutput{p.TerminalID, p.Dropped}}
	case domain.SecretRequested:
		return &SecretEvent{turn, p.RequestID, p.Service, p.Agent}
	case domain.BuildProgressed:
		return buildEvent(p)
	case domain.IterationStarted, domain.GateStarted, domain.GateChecked, domain.LoopEnded:
		return gatesEvent(turn, p)
	case domain.Lagged:
		return &LaggedEvent{SkippedEvents: &SkippedEvents{p.From, p.To}}
	case domain.LogDamaged:
		return &LogDamagedEvent{From: p.From, To: p.To, Message: p.Message}
	}
	return struct{}{}
}

func turnIDs(r domain.TurnRef) TurnIDs {
	return TurnIDs{SessionID: r.HumanLayerSession, RunID: r.HumanLayerRun, TaskID: domain.TaskName(r.Task)}
}

// withIDs returns an object with the ids of a turn before its own members.
func withIDs(turn TurnIDs, object json.RawMessage) json.RawMessage {
	b, _ := json.Marshal(turn) // strings: it cannot fail
	if len(object) > 2 && object[0] == '{' {
		b = append(append(b[:len(b)-1], ','), object[1:]...)
	}
	return b
}

func deltaEvent(p domain.MessageDelta, text TextDelta) Event {
	if p.Kind() == domain.EventThoughtDelta {
		return &ThinkingEvent{text}
	}
	return &DeltaEvent{text}
}

func messageEvent(turn TurnIDs, p domain.MessageAdded) *ItemEvent {
	contentType := p.Type
	if p.Type == "message" {
		contentType = "text"
	}
	return &ItemEvent{
		TurnIDs: turn, NativeID: p.NativeSession, EventType: p.Type, MessageID: p.Key, ParentID: p.ParentID, Role: p.Role, Content: p.Text, ContentType: contentType,
		Subtype: p.Subtype, Truncated: p.Truncated, Attachments: attachments(p.Blocks), Meta: p.Meta,
	}
}

func toolCallEvent(turn TurnIDs, p domain.ToolCallChanged) *ItemEvent {
	d := &ItemEvent{
		TurnIDs: turn, NativeID: p.NativeSession, EventType: "tool_call", ContentType: "tool_use", ToolID: p.ID, ToolName: p.Name, ToolTitle: p.Title,
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

// triggerEvent returns an execution of a trigger with the ids of the turn that it started.
func triggerEvent(turn *TurnIDs, p domain.TriggerExecuted) *TriggerExecutedEvent {
	return &TriggerExecutedEvent{
		TurnIDs:   turn,
		Execution: p.Execution, Trigger: p.Trigger, EventType: p.EventType, Action: p.Action, Status: p.Status,
		Message: p.Message, Channel: p.Channel, Approval: p.Approval, Error: p.Error,
	}
}

func deletedEvent(session int64, p domain.SessionDeleted) *DeletedEvent {
	d := &DeletedEvent{ThreadID: p.SessionUUID, Turns: []string{}, Kept: p.Kept}
	for _, r := range p.Turns {
		d.SessionIDs, d.TaskIDs = append(d.SessionIDs, r.HumanLayerSession), append(d.TaskIDs, domain.TaskName(r.Task))
		if r.Number > 0 { // unknown in an event of an earlier version
			d.Turns = append(d.Turns, domain.Turn{Session: session, Number: r.Number}.Name())
		}
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

// gatesEvent returns an event about gates.
func gatesEvent(turn TurnIDs, payload domain.Payload) any {
	switch p := payload.(type) {
	case domain.IterationStarted:
		return &IterationEvent{turn, p.Iteration, p.MaxIterations, p.Gates}
	case domain.GateStarted:
		return &GateStartEvent{turn, p.Gate, p.Iteration}
	case domain.GateChecked:
		return &GateEvent{turn, GateResultOf(p.GateResult), p.Iteration, p.MaxIterations}
	case domain.LoopEnded:
		return &GatesEndedEvent{turn, p.State, p.Reason, p.Iteration, p.MaxIterations, p.Failing}
	}
	return struct{}{}
}

func buildEvent(p domain.BuildProgressed) *BuildEvent {
	d := &BuildEvent{
		BuildID: p.BuildID, Name: p.Name, Stage: p.Stage, Command: append([]string{}, p.Command...), DurationMS: p.Duration.Milliseconds(),
		Errors: p.Errors, Warnings: p.Warnings, Reason: p.Reason,
	}
	d.Diagnostics = p.Diagnostics
	return d
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
