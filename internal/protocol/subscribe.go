package protocol

type SubscribeParams struct {
	EventTypes    []string `json:"event_types,omitempty" doc:"Only these; absent or empty: all. approval_requested, approval_responded and session_updated are other names of new_approval, approval_resolved and session_status_changed. A type that is not known here is ignored: if no other is named, nothing comes but heartbeats."`
	SessionID     string   `json:"session_id,omitempty" doc:"Only events of this session; every id of the run will do."`
	RunID         string   `json:"run_id,omitempty" doc:"Another name for session_id; with both, only events of this run, which must be one of the session's conversation."`
	ID            string   `json:"subscription_id,omitempty" doc:"The id that it gets, as one on an earlier connection had; absent: a new one. A connection has each id once."`
	Since         *int64   `json:"since,omitempty" doc:"First what the log has after this seq; 0: all of it."`
	Notices       bool     `json:"notices,omitempty" doc:"The client shows its user the notice of the result."`
	DeltaInterval *int64   `json:"delta_interval_ms,omitempty" doc:"How far apart message_delta and thinking_delta of a message come, in milliseconds: 16 to 1000; absent: 50. The first of a message comes at once. What is written meanwhile is joined."`
}

// SubscribeResult is that of HumanLayer. Its clients speak lines; to others it
// also tells where the log is.
type SubscribeResult struct {
	SubscriptionID string `json:"subscription_id"`
	Message        string `json:"message"`
	Notice         string `json:"notice,omitempty" doc:"With notices: says in words that sessions went on while no client followed events. Each user gets it once."`
	Seq            *int64 `json:"seq,omitempty" doc:"LSP framing: the seq after which the events begin, for a since of later."`
}

type UnsubscribeParams struct {
	SubscriptionID string `json:"subscription_id" doc:"What Subscribe returned."`
}

func (p UnsubscribeParams) Check() error { return NotEmpty("subscription_id", p.SubscriptionID) }
