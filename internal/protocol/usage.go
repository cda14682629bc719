package protocol

import (
	"strconv"

	"github.com/duet-rpc/duet-rpc/server"
)

// A TurnBudget limits a turn.
type TurnBudget struct {
	Turns   uint    `json:"turns,omitempty" doc:"Rounds of tool calls; 0: as configured."`
	TimeMS  uint    `json:"time_ms,omitempty" doc:"Working time of the agent in milliseconds; waiting for people does not count. 0: as configured."`
	Tokens  uint    `json:"tokens,omitempty" doc:"Tokens read and written; 0: as configured."`
	CostUSD float64 `json:"cost_usd,omitempty" doc:"US dollars; 0: as configured."`
	Repeats uint    `json:"repeats,omitempty" doc:"Identical tool calls in a row; 0: as configured."`
}

// Check refuses a negative cost, which the schema allows. nil is accepted.
func (b *TurnBudget) Check() error {
	if b == nil || b.CostUSD >= 0 {
		return nil
	}
	return server.InvalidParam(server.ParamError{
		Param: "budget.cost_usd", Expected: "number from 0 on", Received: strconv.FormatFloat(b.CostUSD, 'g', -1, 64),
	})
}

type UsageParams struct {
	By      string `json:"by,omitempty" doc:"day, agent, session or model. rows then has one entry for each."`
	Since   string `json:"since,omitempty" doc:"Only turns created at or after this time: RFC 3339, or a date, which starts at midnight in the daemon's time zone."`
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
