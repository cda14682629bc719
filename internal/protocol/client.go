package protocol

import (
	"encoding/json"
	"time"

	"github.com/duet-rpc/duet-rpc/frame"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/server"
)

// A Client is how one kind of client is told of events. It is chosen once, when
// a connection asks for them.
type Client struct {
	// TellsSeq: the reply to Subscribe says after which event the events begin.
	TellsSeq bool
	// ShowsNotes: a conversation has what no agent and no human has said, as of
	// [domain.IsNote].
	ShowsNotes bool

	event     func(subscription string, seq int64, e eventBody) any
	heartbeat func(subscription string, h heartbeat) any
}

// LSP is how editors are told, with the framing of the Language Server Protocol:
// by notifications.
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

// HumanLayer is how HumanLayer's clients are told, line by line: by results that
// answer no request.
var HumanLayer = &Client{
	event: func(_ string, seq int64, e eventBody) any {
		e.Seq = seq
		return unaskedResult{"2.0", eventParams{Event: e}}
	},
	heartbeat: func(_ string, h heartbeat) any { return unaskedResult{"2.0", h} },
}

// Of is how the client of a connection is told of events: HumanLayer's speak
// lines, editors frames.
func Of(conn *server.Conn) *Client {
	if conn.Framing() == frame.LSP {
		return LSP
	}
	return HumanLayer
}

// Event is an event as a message of a subscription, which may be "". data is
// what [Data] gives, or a part of it.
func (c *Client) Event(subscription string, e domain.Event, data json.RawMessage) any {
	return c.event(subscription, e.Seq, eventBody{Type: TypeOf(e.Payload.Kind()), Timestamp: e.Time.UTC(), Data: data})
}

// Heartbeat is a message that says that a subscription lives.
func (c *Client) Heartbeat(subscription string) any {
	return c.heartbeat(subscription, heartbeat{Type: "heartbeat", Message: "Connection alive"})
}

// A Notification is one of JSON-RPC's.
type Notification struct {
	JSONRPC string `json:"jsonrpc"`
	Method  string `json:"method"`
	Params  any    `json:"params"`
}

func notification(method string, params any) *Notification {
	return &Notification{"2.0", method, params}
}

// An unaskedResult is a result that answers no request: HumanLayer's
// notification.
type unaskedResult struct {
	JSONRPC string `json:"jsonrpc"`
	Result  any    `json:"result"`
}

// An eventBody is an event as every client has it. Seq stands here for those
// that have no other place for it.
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

// TypeOf is what clients call an event of a kind.
func TypeOf(kind domain.EventKind) string { return eventTypes[kind] }

// Data is what clients are sent of an event, as JSON.
func Data(e domain.Event) json.RawMessage { return encode(data(e)) }

// data is an event's payload with the members that clients see.
func data(e domain.Event) any {
	ids := idsOf(e.Ref)
	switch p := e.Payload.(type) {
	case domain.RunStateChanged:
		return statusData{
			ids: ids, ThreadID: p.ThreadUUID, OldStatus: StatusOf(p.From), NewStatus: StatusOf(p.To), OldState: string(p.From), State: string(p.To),
			ParentSessionID: p.ParentSession, Title: p.Title, Agent: p.Agent, Reason: p.Reason, Error: p.Error, ErrorCode: p.ErrorCode, StopReason: p.StopReason,
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
			ToolKind: p.ToolKind, Editable: p.InputEditable, Ambiguity: p.Ambiguity, Title: p.Title, Subject: p.Subject, Options: Options(p.Options), OptionsOnly: answers.OptionsOnly, Declinable: answers.Declinable, Paths: p.Paths,
			Diffs: p.Diffs, Plan: p.Plan, Details: p.Details, Rules: RulePreviewsOf(p.Rule), TakesComment: p.TakesComment, Count: 1, Stale: p.Stale, Reopens: p.Reopens, Reopened: p.Reopened, Replayed: p.Replayed, Truncated: p.Truncated,
			Elicitation: ElicitationOf(p.Elicitation),
		}
	case domain.ApprovalResolved:
		return resolvedData{
			ids: ids, ApprovalID: p.ApprovalID, CallID: p.CallID, Type: p.Type, Approved: p.Status == domain.ApprovalApproved, Decision: p.Status,
			ResponseText: p.Response, Comment: p.Comment, Option: p.Option, DecidedBy: p.DecidedBy, Title: p.Title, ToolName: p.Tool,
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
		if e.Ref == (domain.RunRef{}) {
			return triggerDataOf(nil, p)
		}
		return triggerDataOf(&ids, p)
	case domain.ThreadDeleted:
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

func idsOf(r domain.RunRef) ids { return ids{r.SessionID, r.RunID, domain.TaskName(r.Task)} }

// withIDs is an object with the ids of a run before its own members.
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
