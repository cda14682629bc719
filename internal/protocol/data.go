package protocol

import (
	"cmp"
	"encoding/json"
	"fmt"
	"time"
	"unicode/utf8"

	"github.com/duet-rpc/duet-rpc/internal/domain"
)

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

// triggerData says what a trigger has done; of what it has begun it has the ids.
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

// deletedData says which sessions are no more.
type deletedData struct {
	ThreadID   string   `json:"thread_id"`
	SessionIDs []string `json:"session_ids"`
	TaskIDs    []string `json:"task_ids"`
	Kept       int      `json:"kept,omitempty"`
}

func deletedDataOf(p domain.ThreadDeleted) deletedData {
	d := deletedData{ThreadID: p.ThreadUUID, Kept: p.Kept}
	for _, r := range p.Runs {
		d.SessionIDs, d.TaskIDs = append(d.SessionIDs, r.SessionID), append(d.TaskIDs, domain.TaskName(r.Task))
	}
	return d
}

// ErrorText is why a run failed, in words; "" where it did not.
func ErrorText(r domain.Run) string {
	if r.Error == "" && r.State == domain.TimedOut {
		return "the time limit was reached"
	}
	return r.Error
}

// ExecutionError is why a run failed, as the executor catalog tells it: neither
// its message nor its code, in capitals, is ever empty.
func ExecutionError(r domain.Run) (message, code string) {
	byDefault := "EXECUTOR_ERROR"
	if r.State == domain.TimedOut {
		byDefault = "TIMEOUT"
	}
	return cmp.Or(ErrorText(r), "the agent failed and did not say why"), cmp.Or(r.ErrorCode, byDefault)
}

// AgentOfTool is the agent that the executor catalog means by the name of a tool.
func AgentOfTool(tool string) string {
	if tool == "claude-code" {
		return "claude"
	}
	return tool
}

// DurationMS is how long a run ran, in milliseconds; nil where it did not, or has
// not ended.
func DurationMS(r domain.Run) *int64 {
	if r.Started.IsZero() || r.Ended.IsZero() {
		return nil
	}
	ms := r.Ended.Sub(r.Started).Milliseconds()
	return &ms
}

// Cut shortens a text to about most bytes, and says so in its place.
func Cut(text string, most int) string {
	if len(text) <= most {
		return text
	}
	end := most
	for end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}
	return fmt.Sprintf("%s… [%d of %d bytes left out]", text[:end], len(text)-end, len(text))
}

// IsContextOverflow reports whether a run failed since its prompt, with what was said
// before, does not fit into the model's context.
func IsContextOverflow(r domain.Run) bool { return r.ErrorCode == "AGENT_CONTEXT_OVERFLOW" } // a failure of package task

// A GateResult is what came of a gate, as clients see it.
type GateResult struct {
	Gate       string              `json:"gate" doc:"The command line, or the name of [[gates]]."`
	Passed     bool                `json:"passed"`
	Reason     string              `json:"reason,omitempty" doc:"Why it did not pass, such as: exit status 2."`
	Findings   []domain.Diagnostic `json:"findings" doc:"What its output says is wrong where; at most 50."`
	Errors     int                 `json:"errors,omitempty" doc:"How many of the findings are errors, in all."`
	Warnings   int                 `json:"warnings,omitempty"`
	Output     string              `json:"output,omitempty" doc:"Where it has failed: the first and the last lines that it printed."`
	DurationMS int64               `json:"duration_ms"`
}

// GateResultOf is what came of a gate as clients see it.
func GateResultOf(r domain.GateResult) GateResult {
	return GateResult{r.Gate, r.Passed, r.Reason, List(r.Findings), r.Errors, r.Warnings, r.Output, r.Duration.Milliseconds()}
}

// GateResultsOf are what came of gates as clients see them; a list, even if it is empty.
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

// gatesData is the data of an event of work that has gates.
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
