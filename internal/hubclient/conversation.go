package hubclient

import (
	"context"
	"encoding/json"
	"fmt"
	"io"

	"github.com/duet-rpc/duet-rpc/client"
	"github.com/duet-rpc/duet-rpc/client/eventstream"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/protocol"
)

// Kinds of entries of a conversation.
const (
	EntryMessage    = "message"
	EntryThinking   = "thinking"
	EntryToolCall   = "tool_call"
	EntryToolResult = "tool_result"
	EntryPlan       = "plan"
	EntrySystem     = "system" // what the hub has to say
)

// An Entry is an event of getConversation.
type Entry struct {
	SessionID   string          `json:"session_id"`
	EventType   string          `json:"event_type"` // EntryMessage and the like
	CreatedAt   string          `json:"created_at"`
	Role        string          `json:"role"`
	Content     string          `json:"content"`
	ToolID      string          `json:"tool_id"`
	ToolName    string          `json:"tool_name"`
	ToolInput   string          `json:"tool_input_json"`
	ParentTool  string          `json:"parent_tool_use_id"`
	ResultFor   string          `json:"tool_result_for_id"`
	Result      string          `json:"tool_result_content"`
	IsCompleted bool            `json:"is_completed"`
	Seq         int64           `json:"seq"` // of the event that changed it last
	Key         string          `json:"key"`
	Title       string          `json:"title"`
	ToolKind    string          `json:"tool_kind"`
	Status      string          `json:"status"`
	Refusal     string          `json:"refusal"`
	Data        json.RawMessage `json:"data"` // Tool, Attachments and PlanEntries read it

	Raw json.RawMessage `json:"-"` // all of it, as it came
}

// Tool returns the data of an entry of the kind EntryToolCall.
func (e Entry) Tool() (d protocol.ToolDetails) {
	_ = json.Unmarshal(e.Data, &d) // data of another kind has none
	return d
}

// Attachments returns the content of an entry beside its text.
func (e Entry) Attachments() []protocol.Attachment { return e.Tool().Attachments }

// PlanEntries returns the steps of an entry of the kind EntryPlan.
func (e Entry) PlanEntries() []domain.PlanEntry {
	var d struct{ Entries []domain.PlanEntry }
	_ = json.Unmarshal(e.Data, &d) // data of another kind has none
	return d.Entries
}

// entriesAtOnce is the page size. The hub may return fewer.
const entriesAtOnce = 1000

// Conversation calls each for the entries of a conversation up to a session, in order, until each
// fails.
func Conversation(ctx context.Context, c *client.Client, session string, each func(Entry) error) error {
	for offset := new(uint); offset != nil; {
		page, _, err := Call[struct {
			Events []json.RawMessage `json:"events"`
			Next   *uint             `json:"next_offset"`
		}](ctx, c, "getConversation", protocol.ConversationParams{SessionID: session, Offset: *offset, Limit: new(uint(entriesAtOnce))})
		if err != nil {
			return err
		}
		for _, raw := range page.Events {
			e := Entry{Raw: raw}
			if err := json.Unmarshal(raw, &e); err != nil {
				return err
			}
			if err := each(e); err != nil {
				return err
			}
		}
		offset = page.Next
	}
	return nil
}

// InConversation reports whether an error code of protocol.TypeError is also an entry of the
// conversation, which a client shows instead.
func InConversation(code string) bool {
	return code == "MCP_SERVER_FAILED" || code == "CONTENT_REFUSED" || code == "SETTING_IGNORED" || code == "RULES_NOT_ASKED"
}

// WriteAttachment writes the bytes of an attachment.
func WriteAttachment(ctx context.Context, c *client.Client, out io.Writer, id string) error {
	for offset := uint(0); ; {
		part, _, err := Call[struct {
			Data []byte `json:"data"`
			Next uint   `json:"next_offset"` // 0: that is all
		}](ctx, c, "attachment.get", protocol.AttachmentParams{ID: id, Offset: offset})
		if err != nil {
			return err
		}
		if _, err := out.Write(part.Data); err != nil {
			return fmt.Errorf("writing it: %w", err)
		}
		if part.Next <= offset {
			return nil
		}
		offset = part.Next
	}
}

// EventOf returns a received event with the type of its kind. Unreadable members are zero.
func EventOf(e eventstream.Event) protocol.Event {
	event, _ := protocol.DecodeEvent(e.Type, e.Data)
	protocol.Locate(event, e.Session, e.Turn)
	return event
}

// ApprovalOf returns the approval in an event.
func ApprovalOf(e *protocol.ApprovalEvent) Approval {
	return Approval{
		Approval: protocol.Approval{
			ApprovalID: e.ApprovalID, CallID: e.CallID, TurnUUID: e.SessionID, Turn: e.Name, Session: e.Session, Stale: e.Stale,
			Reopens: e.Reopens, Reopened: e.Reopened, ToolName: e.ToolName, ToolInput: e.ToolInput, Editable: e.Editable,
			Ambiguity: e.Ambiguity, ToolUseID: e.ToolUseID, ToolKind: e.ToolKind, Title: e.Title, Subject: e.Subject,
			Options: e.Options, OptionsOnly: e.OptionsOnly, Declinable: e.Declinable, Paths: e.Paths, Details: e.Details,
			Plan: e.Plan, Rules: e.Rules, TakesComment: e.TakesComment, Truncated: e.Truncated, Type: protocol.ApprovalType(e.Type),
		},
		Elicitation: protocol.Value(e.Elicitation),
		Diffs:       e.Diffs,
	}
}
