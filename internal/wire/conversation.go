package wire

import (
	"context"
	"encoding/json"

	"github.com/duet-rpc/duet-rpc/client"
)

// Kinds of what is said and done in a conversation.
const (
	EntryMessage    = "message"
	EntryThinking   = "thinking"
	EntryToolCall   = "tool_call"
	EntryToolResult = "tool_result"
	EntryPlan       = "plan"
	EntrySystem     = "system" // what the hub has to say
)

// An Entry is something that was said or done, as getConversation tells it.
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

// ToolData is what a tool call has beside its input and its result.
type ToolData struct {
	Paths       []string     `json:"paths"`
	Diffs       []FileDiff   `json:"diffs"`
	Terminal    string       `json:"terminal"`
	Attachments []Attachment `json:"attachments"`

	Meta map[string]any `json:"_meta"` // of the agent
}

// A PlanEntry is a step of an agent's plan.
type PlanEntry struct {
	Content  string `json:"content"`
	Priority string `json:"priority"`
	Status   string `json:"status"` // pending, in_progress or completed
}

// Tool is what an entry of the kind EntryToolCall has beside its input.
func (e Entry) Tool() (d ToolData) {
	_ = json.Unmarshal(e.Data, &d) // data of another kind has none
	return d
}

// Attachments are what an entry has beside its text.
func (e Entry) Attachments() []Attachment { return e.Tool().Attachments }

// PlanEntries are the steps of an entry of the kind EntryPlan.
func (e Entry) PlanEntries() []PlanEntry {
	var d struct{ Entries []PlanEntry }
	_ = json.Unmarshal(e.Data, &d) // data of another kind has none
	return d.Entries
}

// entriesAtOnce is how many entries are asked for at once; the hub gives as many as
// fit.
const entriesAtOnce = 1000

// Conversation calls each with what was said and done up to a session, from the
// beginning of the conversation, until each fails.
func Conversation(ctx context.Context, c *client.Client, session string, each func(Entry) error) error {
	for offset := new(0); offset != nil; {
		page, _, err := Call[struct {
			Events []json.RawMessage `json:"events"`
			Next   *int              `json:"next_offset"`
		}](ctx, c, "getConversation", map[string]any{"session_id": session, "offset": *offset, "limit": entriesAtOnce})
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

// InConversation reports whether an error of a code, which EventError tells, is an entry
// of the conversation as well, which a client tells instead.
func InConversation(code string) bool {
	return code == "MCP_SERVER_FAILED" || code == "CONTENT_REFUSED" || code == "SETTING_IGNORED" || code == "RULES_NOT_ASKED"
}
