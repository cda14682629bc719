package protocol

// A RunBudget is how much a run may use.
type RunBudget struct {
	Turns   uint    `json:"turns,omitempty" doc:"Rounds of tool calls; 0: as configured."`
	TimeMS  uint    `json:"time_ms,omitempty" doc:"How long its agent may work, in milliseconds, without what it waits for people; 0: as configured."`
	Tokens  uint    `json:"tokens,omitempty" doc:"Tokens, read and written; 0: as configured."`
	CostUSD float64 `json:"cost_usd,omitempty" doc:"US dollars; 0: as configured."`
	Repeats uint    `json:"repeats,omitempty" doc:"The same tool call, one after the other; 0: as configured."`
}

type UsageParams struct {
	By        string `json:"by,omitempty" doc:"day, agent, session (a conversation) or model: rows has one entry for each."`
	Since     string `json:"since,omitempty" doc:"Only what was asked for at this time or later: as RFC 3339 has it, or a date, which begins at midnight where the hub is."`
	Until     string `json:"until,omitempty" doc:"Only what was asked for before."`
	SessionID string `json:"session_id,omitempty" doc:"Only the conversation of this session; every id of one will do."`
}

type Usage struct {
	Runs             int     `json:"runs"`
	InputTokens      int64   `json:"input_tokens"`
	OutputTokens     int64   `json:"output_tokens"`
	CacheReadTokens  int64   `json:"cache_read_tokens"`
	CacheWriteTokens int64   `json:"cache_write_tokens"`
	CostUSD          float64 `json:"cost_usd"`
	TimeMS           int64   `json:"time_ms" doc:"How long agents worked, without what they waited for people."`
}

type UsageRow struct {
	Key   string `json:"key" doc:"The day, agent, conversation (its thread_id) or model; empty where it is not known."`
	Title string `json:"title,omitempty" doc:"Of a conversation."`
	Usage
}

type UsageResult struct {
	Total Usage      `json:"total"`
	Rows  []UsageRow `json:"rows,omitempty" doc:"With by: the last day first, or what cost most."`
}
