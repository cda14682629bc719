package eventrow

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
	"time"

	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/store/sqlite/rowjson"
)

// Up to format 8 a row of the log held what HumanLayer's clients were sent. Such
// rows are read for ever, and never written: what stands here does not change.

// Types of rows that hold deltas.
const (
	oldDelta        = "message_delta"
	oldThoughtDelta = "thinking_delta"
)

// oldPayloads read the rows of all other types.
var oldPayloads = map[string]func(data []byte) (domain.RunRef, domain.Payload, error){
	"session_status_changed":   oldCodec(oldStatus.payload),
	"conversation_updated":     oldCodec(oldConversation.payload),
	"new_approval":             oldCodec(oldApproval.payload),
	"approval_resolved":        oldCodec(oldResolved.payload),
	"session_settings_changed": oldCodec(oldSettings.payload),
	"plan":                     oldCodec(oldPlan.payload),
	"usage":                    oldCodec(oldUsage.payload),
	"diff_updated":             oldCodec(oldDiff.payload),
	"terminal_exit":            oldCodec(oldTerminalExit.payload),
	"agent_update":             oldCodec(oldUpdate.payload),
	"task_progress": func(data []byte) (domain.RunRef, domain.Payload, error) {
		ref, report, err := oldReport(data)
		return ref, domain.ProgressReported{Report: report}, err
	},
	"task_error": func(data []byte) (domain.RunRef, domain.Payload, error) {
		ref, report, err := oldReport(data)
		return ref, domain.AgentErrorReported{Report: report}, err
	},
}

// oldIDs are how a row names its run.
type oldIDs struct {
	SessionID string `json:"session_id"`
	RunID     string `json:"run_id"`
	TaskID    string `json:"task_id"`
}

func (ids oldIDs) ref() domain.RunRef {
	digits, _ := strings.CutPrefix(ids.TaskID, "task-")
	task, _ := strconv.ParseInt(digits, 10, 64)
	return domain.RunRef{SessionID: ids.SessionID, RunID: ids.RunID, Task: task}
}

func oldCodec[R any](payload func(R) domain.Payload) func(data []byte) (domain.RunRef, domain.Payload, error) {
	return func(data []byte) (domain.RunRef, domain.Payload, error) {
		var ids oldIDs
		if err := json.Unmarshal(data, &ids); err != nil {
			return domain.RunRef{}, nil, err
		}
		var row R
		err := json.Unmarshal(data, &row)
		return ids.ref(), payload(row), err
	}
}

type oldStatus struct {
	ThreadID        string       `json:"thread_id"`
	OldState        domain.State `json:"old_state"`
	State           domain.State `json:"state"`
	ParentSessionID string       `json:"parent_session_id"`
	Title           string       `json:"title"`
	Agent           string       `json:"agent"`
	Reason          string       `json:"reason"`
	Error           string       `json:"error"`
	ErrorCode       string       `json:"error_code"`
	StopReason      string       `json:"stop_reason"`
}

func (r oldStatus) payload() domain.Payload {
	return domain.RunStateChanged{
		ThreadUUID: r.ThreadID, From: r.OldState, To: r.State, ParentSession: r.ParentSessionID, Title: r.Title, Agent: r.Agent,
		Reason: r.Reason, Error: r.Error, ErrorCode: r.ErrorCode, StopReason: r.StopReason,
	}
}

type oldConversation struct {
	NativeID   string               `json:"claude_session_id"`
	EventType  string               `json:"event_type"`
	MessageID  string               `json:"message_id"`
	Role       string               `json:"role"`
	Content    string               `json:"content"`
	ToolID     string               `json:"tool_id"`
	ToolName   string               `json:"tool_name"`
	ToolTitle  string               `json:"tool_title"`
	ToolKind   string               `json:"tool_kind"`
	ToolStatus string               `json:"tool_status"`
	ToolInput  json.RawMessage      `json:"tool_input"`
	ToolData   *rowjson.ToolDetails `json:"tool_data"`
	Result     string               `json:"tool_result_content"`
	ParentID   string               `json:"parent_tool_use_id"`
	Subtype    string               `json:"subtype"`
	Truncated  bool                 `json:"truncated"`
}

func (r oldConversation) payload() domain.Payload {
	switch r.EventType {
	case "tool_call", "tool_result":
		return domain.ToolCallChanged{
			NativeSession: r.NativeID, ID: r.ToolID, Name: r.ToolName, Title: r.ToolTitle, ToolKind: r.ToolKind, Status: r.ToolStatus, ParentID: r.ParentID,
			Input: r.ToolInput, Details: detailsOrNil(r.ToolData), Ended: r.EventType == "tool_result", Result: r.Result, Truncated: r.Truncated,
		}
	}
	return domain.MessageAdded{
		NativeSession: r.NativeID, Type: r.EventType, Key: r.MessageID, Role: r.Role, Text: r.Content, Subtype: r.Subtype, Truncated: r.Truncated,
	}
}

type oldApproval struct {
	ApprovalID string          `json:"approval_id"`
	CallID     string          `json:"call_id"`
	ToolUseID  string          `json:"tool_use_id"`
	Type       string          `json:"type"`
	ToolName   string          `json:"tool_name"`
	ToolInput  json.RawMessage `json:"tool_input"`
	ToolKind   string          `json:"tool_kind"`
	Editable   bool            `json:"input_editable"` // absent up to format 2
	Ambiguity  string          `json:"input_ambiguity"`
	Title      string          `json:"title"`
	Subject    string          `json:"subject"`
	Options    rowjson.Options `json:"options"`
	Paths      []string        `json:"paths"`
	Diffs      []rowjson.Diff  `json:"diffs"`
	Stale      bool            `json:"stale"`
	Reopens    string          `json:"reopens"`
	Reopened   string          `json:"reopened"`
	Truncated  bool            `json:"truncated"`
}

func (r oldApproval) payload() domain.Payload {
	return domain.ApprovalRequested{
		ApprovalID: r.ApprovalID, CallID: r.CallID, ToolUseID: r.ToolUseID, Type: r.Type, Tool: r.ToolName, Input: r.ToolInput, ToolKind: r.ToolKind,
		InputEditable: r.Editable, Ambiguity: r.Ambiguity, Title: r.Title, Subject: r.Subject, Options: r.Options, Paths: r.Paths, Diffs: rowjson.Diffs(r.Diffs),
		Stale: r.Stale, Reopens: r.Reopens, Reopened: r.Reopened, Truncated: r.Truncated,
	}
}

type oldResolved struct {
	ApprovalID   string `json:"approval_id"`
	CallID       string `json:"call_id"`
	Type         string `json:"type"`
	Decision     string `json:"decision"`
	ResponseText string `json:"response_text"`
	Comment      string `json:"comment"`
	Option       string `json:"option"`
	DecidedBy    string `json:"decided_by"`
	Title        string `json:"title"`
	ToolName     string `json:"tool_name"`
	ToolUseID    string `json:"tool_use_id"`
	Edited       bool   `json:"input_was_edited"`
}

func (r oldResolved) payload() domain.Payload {
	return domain.ApprovalResolved{
		ApprovalID: r.ApprovalID, CallID: r.CallID, ToolUseID: r.ToolUseID, Type: r.Type, Status: r.Decision, Response: r.ResponseText,
		Comment: r.Comment, Option: r.Option, DecidedBy: r.DecidedBy, Title: r.Title, Tool: r.ToolName, InputEdited: r.Edited,
	}
}

type oldSettings struct {
	EventType          string    `json:"event_type"`
	Title              *string   `json:"title"`
	Mode               *string   `json:"permission_mode"`
	Model              *string   `json:"model"`
	AutoAcceptEdits    *bool     `json:"auto_accept_edits"`
	SkipPermissions    *bool     `json:"dangerously_skip_permissions"`
	SkipUntil          time.Time `json:"dangerously_skip_permissions_expires_at"`
	Archived           *bool     `json:"archived"`
	Reason             string    `json:"reason"`
	NativeSession      string    `json:"claude_session_id"`
	AgentMode          string    `json:"agent_mode"`
	AgentModes         []string  `json:"agent_modes"`
	SessionWasReplaced bool      `json:"session_was_replaced"`
}

func (r oldSettings) payload() domain.Payload {
	switch r.EventType {
	case "native_session":
		return domain.NativeSessionChanged{NativeSession: r.NativeSession, Replaced: r.SessionWasReplaced}
	case "mode":
		return domain.AgentModeChanged{Mode: r.AgentMode, Modes: r.AgentModes}
	}
	return domain.SettingsChanged{
		Title: r.Title, Mode: r.Mode, Model: r.Model, AutoAcceptEdits: r.AutoAcceptEdits, SkipPermissions: r.SkipPermissions,
		SkipUntil: r.SkipUntil, Archived: r.Archived, Reason: r.Reason,
	}
}

// oldPlan is a plan, whose steps are spelled as today.
type oldPlan struct{ rowjson.Plan }

func (r oldPlan) payload() domain.Payload { return domain.PlanChanged(r.Value()) }

type oldUsage struct {
	InputTokens      int64   `json:"input_tokens"`
	OutputTokens     int64   `json:"output_tokens"`
	CacheReadTokens  int64   `json:"cache_read_tokens"`
	CacheWriteTokens int64   `json:"cache_write_tokens"`
	ContextUsed      int64   `json:"context_used"`
	ContextSize      int64   `json:"context_size"`
	CostUSD          float64 `json:"cost_usd"`

	Meta json.RawMessage `json:"-"` // it had none
}

func (r oldUsage) payload() domain.Payload { return domain.UsageReported(r) }

type oldDiff struct {
	Path      string `json:"path"`
	Diff      string `json:"diff"`
	Added     int    `json:"added"`
	Removed   int    `json:"removed"`
	Binary    bool   `json:"binary"`
	Truncated bool   `json:"truncated"`
}

func (r oldDiff) payload() domain.Payload { return domain.FileChanged(r) }

type oldTerminalExit struct {
	TerminalID string `json:"terminal_id"`
	TaskID     string `json:"task_id"`
	ExitCode   int    `json:"exit_code"`
	Signal     string `json:"signal"`
}

func (r oldTerminalExit) payload() domain.Payload { return domain.TerminalExited(r) }

type oldUpdate struct {
	Update json.RawMessage `json:"update"`
}

func (r oldUpdate) payload() domain.Payload { return domain.AgentUpdated(r) }

// oldReport reads an object that an executor reported, with the ids of the run
// written before its members.
func oldReport(data []byte) (domain.RunRef, json.RawMessage, error) {
	var ids oldIDs
	if err := json.Unmarshal(data, &ids); err != nil {
		return domain.RunRef{}, nil, err
	}
	before, _ := json.Marshal(ids) // strings: it cannot fail
	rest, ok := bytes.CutPrefix(data, append(before[:len(before)-1], ','))
	if !ok {
		return ids.ref(), nil, nil
	}
	return ids.ref(), append(json.RawMessage{'{'}, rest...), nil
}
