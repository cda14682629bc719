package humanlayer

import (
	"cmp"
	"context"
	"encoding/json"
	"math"
	"time"

	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/protocol"
	"github.com/duet-rpc/duet-rpc/server"
)

type ConversationParams struct {
	SessionID       string `json:"session_id,omitempty" doc:"The session, by any id of the run. This or claude_session_id is required."`
	ClaudeSessionID string `json:"claude_session_id,omitempty" doc:"The agent's id of its session."`
	Offset          uint   `json:"offset,omitempty" doc:"Number of events to skip."`
	Limit           *uint  `json:"limit,omitempty" doc:"Maximum number of events. Absent or 0: as many as fit, at most 10,000."`
}

func (p ConversationParams) Check() error {
	if p.ClaudeSessionID != "" {
		return nil
	}
	return protocol.NotEmpty("session_id", p.SessionID)
}

type ConversationResult struct {
	Events     []*ConversationEvent `json:"events"`
	Total      int                  `json:"total" doc:"Total number of events."`
	NextOffset *int                 `json:"next_offset,omitempty" doc:"Present if there are more: pass it as offset."`
}

// A ConversationEvent is an event of a conversation: HumanLayer's members and ours.
type ConversationEvent struct {
	ID              int64     `json:"id"`
	SessionID       string    `json:"session_id" doc:"The session in which the event happened."`
	ClaudeSessionID string    `json:"claude_session_id"`
	Sequence        int       `json:"sequence" doc:"Position in the whole conversation, from 1."`
	EventType       string    `json:"event_type" doc:"message, thinking, tool_call, tool_result or system. With LSP framing also plan, diff (a file that the session changed) and approval (a user's answer)."`
	CreatedAt       time.Time `json:"created_at"`
	Role            string    `json:"role,omitempty" doc:"user or assistant."`
	Content         string    `json:"content,omitempty"`

	ToolID            string `json:"tool_id,omitempty"`
	ToolName          string `json:"tool_name,omitempty"`
	ToolInputJSON     string `json:"tool_input_json,omitempty" doc:"The input, as a string that contains JSON."`
	ParentToolUseID   string `json:"parent_tool_use_id,omitempty"`
	ToolResultForID   string `json:"tool_result_for_id,omitempty"`
	ToolResultContent string `json:"tool_result_content,omitempty"`
	IsCompleted       bool   `json:"is_completed" doc:"Tool call: it has ended. Other events: the text is complete."`
	ApprovalStatus    string `json:"approval_status,omitempty" doc:"pending, approved, denied, responded, expired or cancelled."`
	ApprovalID        string `json:"approval_id,omitempty"`
	RefusedBy         string `json:"refused_by,omitempty" doc:"Tool call and its result: what refused the call, as decided_by of an approval. Absent if the call failed for another reason."`
	Refusal           string `json:"refusal,omitempty" doc:"The reason, for people."`

	SessionState string `json:"session_state,omitempty" doc:"Only if the session did not end well: interrupted, failed, timed_out or cancelled."`

	Seq      int64           `json:"seq,omitempty" doc:"Number of the log event that changed it last."`
	Key      string          `json:"key,omitempty" doc:"The message_id in message_delta and thinking_delta."`
	Title    string          `json:"title,omitempty" doc:"Tool call: what it does, for people."`
	ToolKind string          `json:"tool_kind,omitempty" doc:"read, edit, delete, move, search, execute, think, fetch or other."`
	Status   string          `json:"status,omitempty" doc:"Tool call: pending, in_progress, completed or failed. Message: cancelled if it was withdrawn before the agent got it; the agent never gets it."`
	Data     json.RawMessage `json:"data,omitempty" doc:"Tool call: paths, diffs, terminal, attachments, _meta. Message or thought: attachments, _meta (the agent's own, at most 8 KiB). Plan: entries. Diff: path, added, removed, binary. Approval: approval_id, type, decision, title, response_text, input_was_edited, decided_by, decided_in (the client in which the user decided), explanation."`
}

func (e *ConversationEvent) Texts() []*string {
	return []*string{&e.Content, &e.ToolInputJSON, &e.ToolResultContent, &e.Refusal}
}

func (m methods) conversation(ctx context.Context, p ConversationParams) (ConversationResult, error) {
	most := protocol.Room(ctx)
	of := protocol.ItemsParams{Session: protocol.Ref(p.SessionID), Uncut: &protocol.UncutItems{
		Offset: int(min(p.Offset, math.MaxInt32)), Limit: eventsAtMost(p, most), Spoken: IsLines(server.ConnFrom(ctx)),
	}}
	if p.SessionID == "" {
		of.AgentSessionID = p.ClaudeSessionID
	}
	l, err := m.items(ctx, of)
	if err != nil {
		return ConversationResult{}, err
	}
	return conversationPage(eventsOf(l)[l.Skipped:], l.Total, p, most), nil
}

// eventsAtOnce limits the events of a result if the request has no limit: the client would wait for
// seconds for a conversation of 100,000 events.
const eventsAtOnce = 10_000

// leastEvent is a lower limit for the length of an event as JSON, in bytes.
const leastEvent = 128

// eventsAtMost returns how many events to read for a result of most bytes.
func eventsAtMost(p ConversationParams, most int) int {
	fit := most/leastEvent + 1
	if p.Limit == nil || *p.Limit == 0 {
		return min(fit, eventsAtOnce)
	}
	return int(min(*p.Limit, uint(fit)))
}

// eventsOf converts items to events. A tool call with a result becomes two.
func eventsOf(l protocol.ItemList) []*ConversationEvent {
	events := make([]*ConversationEvent, 0, len(l.Items)+len(l.Items)/2)
	add := func(e ConversationEvent) { events = append(events, &e) }
	for _, i := range l.Items {
		e := i.Of
		event := ConversationEvent{
			ID: 2 * e.ID, SessionID: i.TurnUUID, ClaudeSessionID: l.Of.Session.NativeSession, EventType: e.Kind, CreatedAt: i.CreatedAt,
			ParentToolUseID: e.ParentID, Seq: e.Seq,
		}
		switch i.TurnState {
		case domain.Interrupted, domain.Failed, domain.TimedOut, domain.Cancelled:
			event.SessionState = string(i.TurnState)
		}
		if e.Kind != domain.ItemTool {
			event.Role, event.Content, event.IsCompleted, event.Key, event.Data = e.Role, e.Content, !i.Open, e.Key, protocol.ItemData(e.Data)
			if i.Withdrawn {
				event.Status = "cancelled"
			}
			add(event)
			continue
		}
		ended := e.Status == "completed" || e.Status == "failed"
		result := event
		event.Role = "assistant"
		event.ToolID, event.ToolName, event.ToolInputJSON = e.Key, toolName(e), string(e.Input)
		event.Title, event.ToolKind, event.Status, event.Data = e.Title, e.ToolKind, e.Status, protocol.ItemData(e.Data)
		event.IsCompleted, event.ApprovalID, event.ApprovalStatus = ended, i.Approval, string(i.ApprovalStatus)
		if details, ok := e.Data.(domain.ToolDetails); ok {
			event.RefusedBy, event.Refusal = details.RefusedBy, details.Refusal
			result.RefusedBy, result.Refusal = details.RefusedBy, details.Refusal
		}
		add(event)
		if ended || e.Result != "" {
			result.ID++
			result.EventType, result.Role, result.CreatedAt = "tool_result", "user", i.UpdatedAt
			result.ToolResultForID, result.ToolResultContent, result.IsCompleted, result.Status = e.Key, e.Result, ended, e.Status
			add(result)
		}
	}
	return events
}

// toolName returns a name that is never empty: old clients show only the name of a tool call.
func toolName(i domain.Item) string {
	return cmp.Or(i.Tool, i.Title, i.ToolKind)
}

// conversationPage returns the part of a page that fits into most bytes; total is the number of all
// events. A client that pages gets whole texts. For another client texts are cut first, and then
// events are left out.
func conversationPage(page []*ConversationEvent, total int, p ConversationParams, most int) ConversationResult {
	begin := int(min(p.Offset, uint(total)))
	for i, e := range page {
		e.Sequence = begin + i + 1
	}
	if p.Limit != nil && *p.Limit > 0 {
		page = page[:min(*p.Limit, uint(len(page)))]
		page = whole(page, most)
	} else {
		page = page[:min(len(page), eventsAtOnce)]
		if protocol.Fitting(page, most) < len(page) {
			withoutData(page)
		}
		page = protocol.Fit(page, most)
	}
	r := ConversationResult{Total: total, Events: page}
	if r.Events == nil {
		r.Events = []*ConversationEvent{}
	}
	if next := begin + len(page); next < total {
		r.NextOffset = &next
	}
	return r
}

// whole returns the first events of a page that fit. It returns at least one, cut if necessary.
func whole(page []*ConversationEvent, most int) []*ConversationEvent {
	n := protocol.Fitting(page, most)
	if n > 0 || len(page) == 0 {
		return page[:n]
	}
	withoutData(page[:1])
	return protocol.Fit(page[:1], most)
}

// withoutData removes the diffs, which cannot be cut and are usually the longest part. A client gets
// them by getSessionSnapshots.
func withoutData(page []*ConversationEvent) {
	const most = 4 << 10
	for _, e := range page {
		if len(e.Data) > most {
			e.Data = protocol.FitRaw(e.Data, most)
		}
	}
}
