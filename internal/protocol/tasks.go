package protocol

import (
	"encoding/json"
	"strconv"

	"github.com/duet-rpc/duet-rpc/server"
)

// AskedIn selects the conversation of a question.
type AskedIn struct {
	Thread string `json:"thread,omitempty" doc:"An active session, by any id: the question belongs to it, and the session waits too. Any other name selects a conversation of questions, which is created if necessary. Default: the project's."`
	CWD    string `json:"cwd,omitempty" doc:"The directory for relative paths and rules, if the question does not belong to a session. Default: the project's root."`
	Keep   bool   `json:"keep,omitempty" doc:"Keep the question open when the connection or the hub ends. The same question in the same thread then gets the answer, for an hour. No effect on a question of a session."`
}

type AskUserParams struct {
	Message string          `json:"message" doc:"The question."`
	Subject string          `json:"subject,omitempty" doc:"The topic, in a few words."`
	Options json.RawMessage `json:"options,omitempty" doc:"Answers to choose from: strings, or {option_id,name,kind}. Absent: any text is an answer."`
	AskedIn
}

type AskUserResult struct {
	Response   string `json:"response" doc:"The answer: the user's text, or the name of the option."`
	Option     string `json:"option,omitempty" doc:"The option_id of the chosen option."`
	ApprovalID string `json:"approval_id" doc:"The approval, for approval.get."`
}

type RequestPermissionParams struct {
	ToolName  string          `json:"tool_name" doc:"The tool."`
	ToolInput json.RawMessage `json:"tool_input,omitempty" doc:"The tool's input."`
	ToolUseID string          `json:"tool_use_id,omitempty" doc:"The caller's id of the tool call."`
	AskedIn
}

func (p RequestPermissionParams) Check() error { return NotEmpty("tool_name", p.ToolName) }

type RequestPermissionResult struct {
	Approved     bool            `json:"approved" doc:"true"`
	Reason       string          `json:"reason,omitempty" doc:"user_approved, or the rule=… or mode=… that decided."`
	Comment      string          `json:"comment,omitempty" doc:"The user's comment."`
	UpdatedInput json.RawMessage `json:"updated_input,omitempty" doc:"The input that the tool must use instead."`
	ApprovalID   string          `json:"approval_id,omitempty" doc:"The approval, for approval.get, if a person was asked."`
}

type CancelTaskResult struct {
	Cancelled bool `json:"cancelled" doc:"The task was cancelled, or is being stopped. false: it had ended before."`
}

// A RunBudget limits a run.
type RunBudget struct {
	Turns   uint    `json:"turns,omitempty" doc:"Rounds of tool calls; 0: as configured."`
	TimeMS  uint    `json:"time_ms,omitempty" doc:"Working time of the agent in milliseconds; waiting for people does not count. 0: as configured."`
	Tokens  uint    `json:"tokens,omitempty" doc:"Tokens read and written; 0: as configured."`
	CostUSD float64 `json:"cost_usd,omitempty" doc:"US dollars; 0: as configured."`
	Repeats uint    `json:"repeats,omitempty" doc:"Identical tool calls in a row; 0: as configured."`
}

// Check refuses a negative cost, which the schema allows. nil is accepted.
func (b *RunBudget) Check() error {
	if b == nil || b.CostUSD >= 0 {
		return nil
	}
	return server.InvalidParam(server.ParamError{Param: "budget.cost_usd", Expected: "number from 0 on", Received: strconv.FormatFloat(b.CostUSD, 'g', -1, 64)})
}

type UsageParams struct {
	By      string `json:"by,omitempty" doc:"day, agent, session or model. rows then has one entry for each."`
	Since   string `json:"since,omitempty" doc:"Only turns created at or after this time: RFC 3339, or a date, which starts at midnight in the hub's time zone."`
	Until   string `json:"until,omitempty" doc:"Only turns created before this time."`
	Session Ref    `json:"session,omitempty" doc:"Only turns of this session."`
}

type Usage struct {
	Turns            int     `json:"turns"`
	InputTokens      int64   `json:"input_tokens"`
	OutputTokens     int64   `json:"output_tokens"`
	CacheReadTokens  int64   `json:"cache_read_tokens"`
	CacheWriteTokens int64   `json:"cache_write_tokens"`
	CostUSD          float64 `json:"cost_usd"`
	TimeMS           int64   `json:"time_ms" doc:"Working time of the agents in milliseconds; waiting for people does not count."`
}

type UsageRow struct {
	Key   string `json:"key" doc:"The day, agent, number of the session or model. Empty if unknown."`
	Title string `json:"title,omitempty" doc:"The session's title, or the first 80 characters of its first prompt."`
	Usage
}

type UsageResult struct {
	Total Usage      `json:"total"`
	Rows  []UsageRow `json:"rows,omitempty" doc:"With by: the newest day first, or the highest cost first."`
}
