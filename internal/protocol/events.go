package protocol

import (
	"encoding/json"
	"time"

	"github.com/duet-rpc/duet-rpc/internal/domain"
)

// An Event is what the notification event has: something that happened, and where.
type Event struct {
	SubscriptionID string          `json:"subscription_id,omitempty"`
	Seq            int64           `json:"seq,omitempty" doc:"Its number in the log: they only rise. Absent: the log does not have it."`
	Kind           string          `json:"kind"`
	Time           time.Time       `json:"time"`
	Session        int64           `json:"session,omitempty" doc:"The session's number in the project."`
	Turn           string          `json:"turn,omitempty" doc:"The turn's number, such as 12.3."`
	TurnUUID       string          `json:"turn_uuid,omitempty"`
	Data           json.RawMessage `json:"data"`
}

// An EventForm is how the events of a subscription are written: the native form, or that of a dialect.
type EventForm struct {
	// Data returns the data of an event as JSON.
	Data func(domain.Event) json.RawMessage
	// Event returns an event as a message of a subscription, which may be "". data is the result of
	// Data, or a shortened form of it.
	Event func(subscription string, e domain.Event, data json.RawMessage) any
	// Heartbeat returns the heartbeat of a subscription, which says that it is alive.
	Heartbeat func(subscription string) any
}

// Native is the native form of events: notifications with the params [Event].
var Native = &EventForm{
	Data: Data,
	Event: func(subscription string, e domain.Event, data json.RawMessage) any {
		return Notify("event", &Event{
			subscription, e.Seq, KindOf(e.Payload.Kind()), e.Time.UTC(), e.Session, e.TurnName(), e.Ref.HumanLayerSession, data,
		})
	},
	Heartbeat: func(subscription string) any { return Notify("heartbeat", Heartbeat{subscription}) },
}

// A Heartbeat is what the notification heartbeat has.
type Heartbeat struct {
	SubscriptionID string `json:"subscription_id"`
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

// Data returns the data of an event for clients, as JSON.
func Data(e domain.Event) json.RawMessage { return encode(data(e)) }

// data returns the data of an event as a value of the type of its kind, or the JSON of one that is a
// report of an executor.
func data(e domain.Event) any {
	switch p := e.Payload.(type) {
	case domain.TurnStateChanged:
		return &TurnStateEvent{
			SessionUUID: p.SessionUUID, OldState: p.From, State: p.To, ParentUUID: p.ParentHumanLayerSession, Title: p.Title,
			Agent: p.Agent, Reason: p.Reason, Error: p.Error, ErrorCode: p.ErrorCode, StopReason: p.StopReason, AuthMethods: p.SignIn,
		}
	case domain.MessageDelta:
		return &TextEvent{p.Key, p.Text, p.Length, p.ParentID, p.Meta}
	case domain.MessageAdded:
		return &Item{
			Type: itemTypes[p.Type], Key: p.Key, Role: p.Role, Text: p.Text, Subtype: p.Subtype, Truncated: p.Truncated,
			ParentID: p.ParentID, AgentSessionID: p.NativeSession, Attachments: AttachmentsOf(p.Blocks), Meta: p.Meta,
		}
	case domain.ToolCallChanged:
		return toolCall(p)
	case domain.ApprovalRequested:
		answers := domain.AnswersOf(p.Type, p.Elicitation, p.Options)
		return &ApprovalOpenedEvent{
			ApprovalID: p.ApprovalID, CallID: p.CallID, ToolUseID: p.ToolUseID, ParentID: p.ParentID, Type: ApprovalType(p.Type), ToolName: p.Tool,
			ToolInput: p.Input,
			ToolKind:  p.ToolKind, Editable: p.InputEditable, TextMember: TextMember(p.InputEditable, p.Input),
			Ambiguity: p.Ambiguity, Title: p.Title, Subject: p.Subject, Options: p.Options,
			OptionsOnly: answers.OptionsOnly, Declinable: answers.Declinable, Paths: p.Paths, Diffs: p.Diffs, Plan: p.Plan, Details: p.Details,
			Rules: RulePreviewsOf(p.Rule), TakesComment: p.TakesComment, Stale: p.Stale, Reopens: p.Reopens, Reopened: p.Reopened,
			Replayed: p.Replayed, Truncated: p.Truncated, Elicitation: ElicitationOf(p.Elicitation),
		}
	case domain.ApprovalResolved:
		return &ApprovalClosedEvent{
			ApprovalID: p.ApprovalID, CallID: p.CallID, Type: ApprovalType(p.Type), Status: ApprovalStatus(p.Status), Response: p.Response, Comment: p.Comment,
			Option: p.Option, DecidedBy: p.DecidedBy, DecidedIn: p.DecidedIn, Title: p.Title, ToolName: p.Tool, ToolUseID: p.ToolUseID,
			Edited: p.InputEdited, Explanation: p.Explanation,
		}
	case domain.SettingsChanged:
		return settingsEvent(p)
	case domain.NativeSessionChanged:
		return &SessionEvent{AgentSessionID: p.NativeSession, AgentSessionReplaced: p.Replaced, Forked: p.Forked}
	case domain.AgentModeChanged:
		return &SessionEvent{AgentMode: p.Mode, AgentModes: p.Modes, AgentModeChoices: p.Choices}
	case domain.AgentSessionChanged:
		return &AgentSessionEvent{AgentSessionOf(p.AgentSession), p.Truncated}
	case domain.PlanChanged:
		return &PlanEvent{List(p.Entries)}
	case domain.UsageReported:
		return &UsageEvent{p.InputTokens, p.OutputTokens, p.CacheReadTokens, p.CacheWriteTokens, p.ContextUsed, p.ContextSize, p.CostUSD, p.Meta}
	case domain.FileChanged:
		return &ChangeEvent{p.Path, p.Diff, p.Added, p.Removed, p.Binary, p.Truncated}
	case domain.ChangeDecided:
		return &ChangeDecidedEvent{p.Path, p.Decision, p.Hunk}
	case domain.QueueChanged:
		return &QueueEvent{p.Text, p.Truncated, List(p.Order)}
	case domain.ProgressReported:
		return reported(p.Report)
	case domain.AgentErrorReported:
		return reported(p.Report)
	case domain.AgentUpdated:
		return &AgentUpdateEvent{p.Update}
	case domain.AgentSilent:
		return &SilentEvent{p.Since.UTC(), p.Note, p.ToolID, p.Tool, p.Ended}
	case domain.TriggerExecuted:
		return &TriggerFiredEvent{p.Execution, p.Trigger, p.EventType, p.Action, p.Status, p.Message, p.Channel, p.Approval, p.Error}
	case domain.SessionDeleted:
		return deletedEvent(e.Session, p)
	case domain.TerminalPrinted:
		return &TerminalOutputEvent{p.TerminalID, p.Data, p.Encoding}
	case domain.TerminalExited:
		return &TerminalExitedEvent{p.TerminalID, p.ExitCode, p.Signal}
	case domain.TerminalLagged:
		return &TerminalLaggedEvent{p.TerminalID, p.Dropped}
	case domain.SecretRequested:
		return &SecretEvent{p.RequestID, p.Service, p.Agent}
	case domain.BuildProgressed:
		return &BuildEvent{
			p.BuildID, p.Name, p.Stage, append([]string{}, p.Command...), p.Duration.Milliseconds(), p.Errors, p.Warnings, p.Diagnostics, p.Reason,
		}
	case domain.IterationStarted:
		return &GateIterationEvent{p.Iteration, p.MaxIterations, p.Gates}
	case domain.GateStarted:
		return &GateStartedEvent{p.Gate, p.Iteration}
	case domain.GateChecked:
		return &GateResultEvent{GateResultOf(p.GateResult), p.Iteration, p.MaxIterations}
	case domain.LoopEnded:
		return &GatesEndedEvent{p.State, p.Reason, p.Iteration, p.MaxIterations, p.Failing}
	case domain.Lagged:
		return &LaggedEvent{p.From, p.To}
	case domain.LogDamaged:
		return &LogDamagedEvent{p.From, p.To, p.Message}
	}
	return struct{}{}
}

// reported returns the report of an executor, or an empty object.
func reported(report json.RawMessage) any {
	if len(report) == 0 || report[0] != '{' {
		return struct{}{}
	}
	return report
}

func toolCall(p domain.ToolCallChanged) *Item {
	i := &Item{
		Type: ItemToolCall, Key: p.ID, ToolName: p.Name, Title: p.Title, ToolKind: p.ToolKind, Status: ToolStatus(p.Status), ToolInput: p.Input,
		Result: p.Result, ParentID: p.ParentID, AgentSessionID: p.NativeSession, Truncated: p.Truncated,
	}
	if p.Details != nil {
		i.Details, i.RefusedBy, i.Refusal = ToolDetailsOf(*p.Details), p.Details.RefusedBy, p.Details.Refusal
	}
	return i
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

type SubscribeParams struct {
	Kinds         []string `json:"kinds,omitempty" doc:"Only these kinds. Absent or empty: all."`
	Session       Ref      `json:"session,omitempty" doc:"Only events of this session, such as 12, or of this turn, such as 12.3."`
	ID            string   `json:"subscription_id,omitempty" doc:"The id for this subscription, such as that of an earlier connection. Absent: a new id. It must be unique within the connection."`
	Since         *int64   `json:"since,omitempty" doc:"First replay the events after this seq. 0: all."`
	Notices       bool     `json:"notices,omitempty" doc:"The client shows the notice in the result to its user."`
	DeltaInterval *int64   `json:"delta_interval_ms,omitempty" doc:"Interval between text.delta or thought.delta events of one message, in milliseconds: 16 to 1000, default 50. The first delta of a message is sent at once; later text is joined."`

	Form *EventForm         `json:"-"` // of a dialect, which selects Only instead of Kinds
	Only []domain.EventKind `json:"-"` // nil: all
}

// SubscribeResult is the result of event.subscribe.
type SubscribeResult struct {
	SubscriptionID string   `json:"subscription_id"`
	Seq            int64    `json:"seq" doc:"The seq after which the events begin; use it as since later."`
	Unknown        []string `json:"unknown_kinds,omitempty" doc:"Of kinds: those that this daemon does not have. It sends no such events."`
	Notice         string   `json:"notice,omitempty" doc:"With notices: says that sessions continued while no client followed events. Each user gets it once."`
}

type UnsubscribeParams struct {
	SubscriptionID string `json:"subscription_id" doc:"The subscription_id from event.subscribe."`
}

func (p UnsubscribeParams) Check() error { return NotEmpty("subscription_id", p.SubscriptionID) }
