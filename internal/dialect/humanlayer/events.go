package humanlayer

import (
	"cmp"
	"encoding/json"
	"slices"
	"time"

	"github.com/duet-rpc/duet-rpc/frame"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/protocol"
	"github.com/duet-rpc/duet-rpc/server"
)

// IsLines reports whether a connection is one of HumanLayer's own clients: they send a line per
// message. They know no notices in a session, and no seq in the reply to Subscribe.
func IsLines(conn *server.Conn) bool { return conn.Framing() == frame.NDJSON }

// FormOf returns the form of the events for a connection.
func FormOf(conn *server.Conn) *protocol.EventForm {
	if IsLines(conn) {
		return Lines
	}
	return Framed
}

// Lines is the form on a connection of lines: results without an id.
var Lines = &protocol.EventForm{
	Data: Data,
	Event: func(_ string, e domain.Event, data json.RawMessage) any {
		return unaskedResult{"2.0", eventParams{Event: eventBody{TypeOf(e.Payload.Kind()), e.Time.UTC(), e.Seq, data}}}
	},
	Heartbeat: func(string) any { return unaskedResult{"2.0", heartbeat{Type: "heartbeat", Message: alive}} },
}

// Framed is the form on a connection with LSP framing: notifications.
var Framed = &protocol.EventForm{
	Data: Data,
	Event: func(subscription string, e domain.Event, data json.RawMessage) any {
		p := eventParams{
			SubscriptionID: subscription, Seq: e.Seq, Session: e.Session, Turn: e.TurnName(),
			Event: eventBody{Type: TypeOf(e.Payload.Kind()), Timestamp: e.Time.UTC(), Data: data},
		}
		return protocol.Notify("event", p)
	},
	Heartbeat: func(subscription string) any {
		return protocol.Notify("heartbeat", heartbeat{SubscriptionID: subscription, Type: "heartbeat", Message: alive})
	},
}

const alive = "Connection alive"

// An unaskedResult is a result without an id, which HumanLayer uses as a notification.
type unaskedResult struct {
	JSONRPC string `json:"jsonrpc"`
	Result  any    `json:"result"`
}

// An eventBody is the part of an event that both framings have. Only lines use Seq.
type eventBody struct {
	Type      string          `json:"type"`
	Timestamp time.Time       `json:"timestamp"`
	Seq       int64           `json:"seq,omitempty"`
	Data      json.RawMessage `json:"data"`
}

type eventParams struct {
	SubscriptionID string    `json:"subscription_id,omitempty"`
	Seq            int64     `json:"seq,omitempty"`
	Session        int64     `json:"session,omitempty"`
	Turn           string    `json:"turn,omitempty"`
	Event          eventBody `json:"event"`
}

type heartbeat struct {
	SubscriptionID string `json:"subscription_id,omitempty"`
	Type           string `json:"type"`
	Message        string `json:"message"`
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

// Native returns the parameters of event.subscribe, apart from the kinds.
func (p SubscribeParams) Native() protocol.SubscribeParams {
	return protocol.SubscribeParams{
		Session: protocol.Ref(cmp.Or(p.RunID, p.SessionID)), ID: p.ID, Since: p.Since, Notices: p.Notices, DeltaInterval: p.DeltaInterval,
	}
}

// SubscribeResult is the result of Subscribe. Only clients with LSP framing get Seq.
type SubscribeResult struct {
	SubscriptionID string `json:"subscription_id"`
	Message        string `json:"message"`
	Notice         string `json:"notice,omitempty" doc:"With notices: says that sessions continued while no client followed events. Each user gets it once."`
	Seq            *int64 `json:"seq,omitempty" doc:"LSP framing: the seq after which the events begin; use it as since later."`
}

// eventTypes are the dialect's names of the hub's kinds of events.
var eventTypes = map[domain.EventKind]string{
	domain.EventTurnState:         "session_status_changed",
	domain.EventMessage:           "conversation_updated",
	domain.EventToolCall:          "conversation_updated",
	domain.EventApprovalRequested: "new_approval",
	domain.EventApprovalResolved:  "approval_resolved",
	domain.EventSettings:          "session_settings_changed",
	domain.EventNativeSession:     "session_settings_changed",
	domain.EventAgentMode:         "session_settings_changed",
	domain.EventDelta:             "message_delta",
	domain.EventThoughtDelta:      "thinking_delta",
	domain.EventPlan:              "plan",
	domain.EventUsage:             "usage",
	domain.EventFileChange:        "diff_updated",
	domain.EventTerminalOutput:    "terminal_output",
	domain.EventTerminalExit:      "terminal_exit",
	domain.EventProgress:          "task_progress",
	domain.EventAgentError:        "task_error",
	domain.EventAgentUpdate:       "agent_update",
	domain.EventAgentSilent:       "agent_silent",
	domain.EventLagged:            "lagged",
	domain.EventTerminalLagged:    "lagged",
	domain.EventLogDamaged:        "log_damaged",
	domain.EventSecretRequested:   "secret_requested",
	domain.EventAgentSession:      "agent_session",
	domain.EventSessionDeleted:    "session_deleted",
	domain.EventTrigger:           "trigger_executed",
	domain.EventBuild:             "build_progress",
	domain.EventIteration:         "iteration_start",
	domain.EventGateStart:         "gate_start",
	domain.EventGate:              "gate_result",
	domain.EventLoopEnded:         "gates_complete",
	domain.EventChangeDecided:     "change_decided",
	domain.EventQueue:             "queue_changed",
}

// formerTypes are the names with which HumanLayer's terminal client of June 2025 subscribes. It
// expects the later names in the events themselves.
var formerTypes = map[string]string{
	"new_approval":           "approval_requested",
	"approval_resolved":      "approval_responded",
	"session_status_changed": "session_updated",
}

// TypeOf returns the dialect's name of a kind of event.
func TypeOf(kind domain.EventKind) string { return eventTypes[kind] }

// Kinds returns the hub's kinds of events with the given names, and ignores unknown names. Without
// names it returns nil, which selects all.
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

// Data returns the data of an event, as JSON: the native data with the ids of the turn, or a form of
// its own.
func Data(e domain.Event) json.RawMessage {
	turn := idsOf(e.Ref)
	if own := ownData(e, turn); own != nil {
		b, err := json.Marshal(own)
		if err != nil { // third-party text that is not JSON
			b, _ = json.Marshal(map[string]string{"malformed": err.Error()})
		}
		return b
	}
	native := protocol.Data(e)
	switch e.Payload.(type) {
	case domain.BuildProgressed, domain.Lagged, domain.TerminalLagged, domain.LogDamaged:
		return native
	}
	return withIDs(turn, native)
}

// ownData returns the data of an event whose members differ from the native ones, or nil.
func ownData(e domain.Event, turn turnIDs) any {
	switch p := e.Payload.(type) {
	case domain.TurnStateChanged:
		return &statusEvent{
			turnIDs: turn, ThreadID: p.SessionUUID, OldStatus: StatusOf(p.From), NewStatus: StatusOf(p.To), OldState: string(p.From),
			State: string(p.To), ParentSessionID: p.ParentHumanLayerSession, Title: p.Title, Agent: p.Agent, Reason: p.Reason, Error: p.Error,
			ErrorCode: p.ErrorCode, StopReason: p.StopReason, AuthMethods: p.SignIn,
		}
	case domain.MessageDelta:
		return &deltaEvent{turn, p.Key, "assistant", p.Text, p.Length, p.ParentID, p.Meta}
	case domain.MessageAdded:
		return messageEvent(turn, p)
	case domain.ToolCallChanged:
		return toolCallEvent(turn, p)
	case domain.ApprovalRequested:
		return askedEvent(turn, p)
	case domain.ApprovalResolved:
		return &resolvedEvent{
			turnIDs: turn, ApprovalID: p.ApprovalID, CallID: p.CallID, Type: p.Type, Approved: p.Status == domain.ApprovalApproved,
			Decision:     p.Status,
			ResponseText: p.Response, Comment: p.Comment, Option: p.Option, DecidedBy: p.DecidedBy, DecidedIn: p.DecidedIn, Title: p.Title,
			ToolName: p.Tool, ToolUseID: p.ToolUseID, Edited: p.InputEdited, Explanation: p.Explanation,
		}
	case domain.SettingsChanged:
		return &settingsEvent{
			turnIDs: turn, EventType: "settings_updated", Title: p.Title, Mode: p.Mode, Model: p.Model, AutoAcceptEdits: p.AutoAcceptEdits,
			SkipPermissions: p.SkipPermissions, SkipUntil: rfc3339(p.SkipUntil), Archived: p.Archived, Reason: p.Reason,
			Options: p.Options, RequestedAgent: p.Agent,
		}
	case domain.NativeSessionChanged:
		return &settingsEvent{
			turnIDs: turn, EventType: "native_session", NativeSession: p.NativeSession, SessionWasReplaced: p.Replaced, Forked: p.Forked,
		}
	case domain.AgentModeChanged:
		return &settingsEvent{turnIDs: turn, EventType: "mode", AgentMode: p.Mode, AgentModes: p.Modes, AgentModeChoices: p.Choices}
	case domain.QueueChanged:
		return &queueEvent{turn, p.Text, p.Truncated, p.Order}
	case domain.AgentSilent:
		return &silentEvent{turn, p.Since.UTC(), p.Note, p.ToolID, p.Tool, p.Ended}
	case domain.TriggerExecuted:
		t := &triggerEvent{nil, p.Execution, p.Trigger, p.EventType, p.Action, p.Status, p.Message, p.Channel, p.Approval, p.Error}
		if e.Ref != (domain.TurnRef{}) {
			t.turnIDs = &turn
		}
		return t
	case domain.SessionDeleted:
		return deletedOf(e.Session, p)
	case domain.TerminalPrinted:
		return &terminalEvent{TerminalID: p.TerminalID, TaskID: p.TaskID, Data: p.Data, Encoding: p.Encoding}
	case domain.TerminalExited:
		return &terminalExitEvent{TerminalID: p.TerminalID, TaskID: p.TaskID, ExitCode: p.ExitCode, Signal: p.Signal}
	}
	return nil
}

func idsOf(r domain.TurnRef) turnIDs {
	return turnIDs{SessionID: r.HumanLayerSession, RunID: r.HumanLayerRun, TaskID: domain.TaskName(r.Task)}
}

// withIDs returns an object with the ids of a turn before its own members.
func withIDs(turn turnIDs, object json.RawMessage) json.RawMessage {
	b, _ := json.Marshal(turn) // strings: it cannot fail
	if len(object) > 2 && object[0] == '{' {
		b = append(append(b[:len(b)-1], ','), object[1:]...)
	}
	return b
}

func messageEvent(turn turnIDs, p domain.MessageAdded) *itemEvent {
	contentType := p.Type
	if p.Type == domain.ItemMessage {
		contentType = "text"
	}
	return &itemEvent{
		turnIDs: turn, NativeID: p.NativeSession, EventType: p.Type, MessageID: p.Key, ParentID: p.ParentID, Role: p.Role, Content: p.Text,
		ContentType: contentType,
		Subtype:     p.Subtype, Truncated: p.Truncated, Attachments: protocol.AttachmentsOf(p.Blocks), Meta: p.Meta,
	}
}

func toolCallEvent(turn turnIDs, p domain.ToolCallChanged) *itemEvent {
	d := &itemEvent{
		turnIDs: turn, NativeID: p.NativeSession, EventType: "tool_call", ContentType: "tool_use", ToolID: p.ID, ToolName: p.Name,
		ToolTitle: p.Title,
		ToolKind:  p.ToolKind, ToolStatus: p.Status, ToolInput: p.Input, ParentID: p.ParentID, Truncated: p.Truncated,
	}
	if p.Details != nil {
		d.ToolData, d.RefusedBy, d.Refusal = protocol.ToolDetailsOf(*p.Details), p.Details.RefusedBy, p.Details.Refusal
	}
	if p.Ended {
		d.EventType, d.ContentType, d.Role, d.ResultFor, d.Result = "tool_result", "tool_result", "user", p.ID, p.Result
	}
	return d
}

func askedEvent(turn turnIDs, p domain.ApprovalRequested) *approvalEvent {
	answers := domain.AnswersOf(p.Type, p.Elicitation, p.Options)
	return &approvalEvent{
		turnIDs: turn, ApprovalID: p.ApprovalID, CallID: p.CallID, ToolUseID: p.ToolUseID, ParentID: p.ParentID, Type: p.Type, ToolName: p.Tool,
		ToolInput: p.Input,
		ToolKind:  p.ToolKind, Editable: p.InputEditable, Ambiguity: p.Ambiguity, Title: p.Title, Subject: p.Subject, Options: p.Options,
		OptionsOnly: answers.OptionsOnly, Declinable: answers.Declinable, Paths: p.Paths, Diffs: p.Diffs, Plan: p.Plan, Details: p.Details,
		Rules: protocol.RulePreviewsOf(p.Rule), TakesComment: p.TakesComment, Count: 1, Stale: p.Stale, Reopens: p.Reopens, Reopened: p.Reopened,
		Replayed: p.Replayed, Truncated: p.Truncated, Elicitation: protocol.ElicitationOf(p.Elicitation),
	}
}

func deletedOf(session int64, p domain.SessionDeleted) *deletedEvent {
	d := &deletedEvent{ThreadID: p.SessionUUID, Turns: []string{}, Kept: p.Kept}
	for _, r := range p.Turns {
		d.SessionIDs, d.TaskIDs = append(d.SessionIDs, r.HumanLayerSession), append(d.TaskIDs, domain.TaskName(r.Task))
		if r.Number > 0 { // unknown in an event of an earlier version
			d.Turns = append(d.Turns, domain.Turn{Session: session, Number: r.Number}.Name())
		}
	}
	return d
}

func rfc3339(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339)
}
