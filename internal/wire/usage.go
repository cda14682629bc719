package wire

// Usage is what tasks have used, as far as their agents say.
type Usage struct {
	Runs             int     `json:"runs"`
	InputTokens      int64   `json:"input_tokens"`
	OutputTokens     int64   `json:"output_tokens"`
	CacheReadTokens  int64   `json:"cache_read_tokens"`
	CacheWriteTokens int64   `json:"cache_write_tokens"`
	CostUSD          float64 `json:"cost_usd"`
	TimeMS           int64   `json:"time_ms"`
}

// A UsageReport is what task.usage tells.
type UsageReport struct {
	Total Usage `json:"total"`
	Rows  []struct {
		Key   string `json:"key"`
		Title string `json:"title"`
		Usage
	} `json:"rows"`
}
