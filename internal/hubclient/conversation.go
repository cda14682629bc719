package hubclient

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"time"

	"github.com/duet-rpc/duet-rpc/client"
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

// ToolData has the files, terminal and content of a tool call.
type ToolData struct {
	Paths       []string              `json:"paths"`
	Diffs       []domain.Diff         `json:"diffs"`
	Terminal    string                `json:"terminal"`
	Attachments []protocol.Attachment `json:"attachments"`

	Meta map[string]any `json:"_meta"` // of the agent
}

// Tool returns the data of an entry of the kind EntryToolCall.
func (e Entry) Tool() (d ToolData) {
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

// InConversation reports whether an error code of protocol.TypeError is also an entry of the
// conversation, which a client shows instead.
func InConversation(code string) bool {
	return code == "MCP_SERVER_FAILED" || code == "CONTENT_REFUSED" || code == "SETTING_IGNORED" || code == "RULES_NOT_ASKED"
}

// WriteAttachment writes the bytes of an attachment.
func WriteAttachment(ctx context.Context, c *client.Client, out io.Writer, id string) error {
	for offset := int64(0); ; {
		part, _, err := Call[struct {
			Data []byte `json:"data"`
			Next int64  `json:"next_offset"` // 0: that is all
		}](ctx, c, "getAttachment", map[string]any{"id": id, "offset": offset})
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

// EventData has the members of all types of events; docs/protocol.md lists those of each type.
type EventData struct {
	SessionID string   `json:"session_id"`
	TaskID    string   `json:"task_id"`
	TaskIDs   []string `json:"task_ids"` // of what was deleted

	OldState  string `json:"old_state"`
	State     string `json:"state"`
	Reason    string `json:"reason"`
	Error     string `json:"error"`
	AgentMode string `json:"agent_mode"`

	ErrorCode   string              `json:"error_code"`
	StopReason  string              `json:"stop_reason"`
	AuthMethods []domain.AuthMethod `json:"auth_methods"`

	protocol.AgentSession

	MessageID   string                `json:"message_id"`
	Delta       string                `json:"delta"`
	EventType   string                `json:"event_type"` // of a conversation: EntryMessage and the like
	Role        string                `json:"role"`
	Content     string                `json:"content"`
	Subtype     string                `json:"subtype"`
	ToolID      string                `json:"tool_id"`
	ToolName    string                `json:"tool_name"`
	ToolTitle   string                `json:"tool_title"`
	ToolKind    string                `json:"tool_kind"`
	ToolStatus  string                `json:"tool_status"`
	ToolInput   json.RawMessage       `json:"tool_input"`
	ToolData    ToolData              `json:"tool_data"`
	Result      string                `json:"tool_result_content"`
	RefusedBy   string                `json:"refused_by"`
	Refusal     string                `json:"refusal"`
	ParentTool  string                `json:"parent_tool_use_id"`
	Attachments []protocol.Attachment `json:"attachments"`
	Entries     []domain.PlanEntry    `json:"entries"`

	ContextUsed int64   `json:"context_used"`
	ContextSize int64   `json:"context_size"`
	CostUSD     float64 `json:"cost_usd"`

	Meta json.RawMessage `json:"_meta"` // the agent's own, of a message, a piece of it or its usage

	Path      string `json:"path"`
	Diff      string `json:"diff"`
	Added     int    `json:"added"`
	Removed   int    `json:"removed"`
	Binary    bool   `json:"binary"`
	Truncated bool   `json:"truncated"`

	ApprovalID  string `json:"approval_id"`
	Title       string `json:"title"`
	Decision    string `json:"decision"`
	DecidedBy   string `json:"decided_by"`
	DecidedIn   string `json:"decided_in"`
	Explanation string `json:"explanation"`
	Comment     string `json:"comment"`
	Response    string `json:"response_text"`

	TerminalID string `json:"terminal_id"`
	Data       string `json:"data"`
	Encoding   string `json:"encoding"`
	ExitCode   int    `json:"exit_code"`
	Signal     string `json:"signal"` // that ended the program of a terminal

	RequestID string `json:"request_id"` // of a key that is asked for
	Service   string `json:"service"`    // whose key that is

	Iteration     int                 `json:"iteration"`
	MaxIterations int                 `json:"max_iterations"`
	Gates         []string            `json:"gates"`
	Gate          string              `json:"gate"`
	Passed        bool                `json:"passed"`
	Findings      []domain.Diagnostic `json:"findings"`
	Output        string              `json:"output"`
	Milliseconds  int64               `json:"duration_ms"`
	GatesState    string              `json:"gates_state"`
	Failing       []string            `json:"failing"`

	Since time.Time `json:"since"`
	Note  string    `json:"note"`
	Ended bool      `json:"ended"`

	Code    string          `json:"code"` // of an error that an agent reports
	Message string          `json:"message"`
	Update  json.RawMessage `json:"update"` // as the agent sent it
	ToSeq   int64           `json:"to_seq"`
}

// GateResult returns the result in an event of the type protocol.TypeGate.
func (d EventData) GateResult() protocol.GateResult {
	return protocol.GateResult{Gate: d.Gate, Passed: d.Passed, Reason: d.Reason, Findings: d.Findings, Output: d.Output, DurationMS: d.Milliseconds}
}

// GatesEnded returns the final state in an event of the type protocol.TypeGatesEnded.
func (d EventData) GatesEnded() *protocol.Gates {
	return &protocol.Gates{State: d.GatesState, Reason: d.Reason, Iteration: d.Iteration, MaxIterations: d.MaxIterations, Failing: d.Failing}
}

// DataOf returns the data of an event. Unreadable members are zero.
func DataOf(e client.Event) (d EventData) {
	_ = json.Unmarshal(e.Data, &d)
	return d
}

// ApprovalOf returns the approval in an event of the type protocol.TypeApproval.
func ApprovalOf(e client.Event) (a Approval) {
	_ = json.Unmarshal(e.Data, &a) // what cannot be read of it is zero
	return a
}
