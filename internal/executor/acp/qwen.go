package acp

import (
	"cmp"
	"encoding/json"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/rawjson"
)

// Protocol extensions of qwen-code (0.24) for agent-initiated turns.
const (
	qwenStartTurn = "_qwencode/start_turn" // a request
	qwenEndTurn   = "_qwencode/end_turn"
)

// workTrigger returns why the agent continues, if the update says so: qwen-code names the
// finished background task.
func workTrigger(update []byte) func() *catalog.TurnTrigger {
	return func() *catalog.TurnTrigger {
		var meta struct {
			Source         string
			BackgroundTask struct{ CommandLabel, Label string }
		}
		if raw := rawjson.Member(update, "_meta"); raw == nil || json.Unmarshal(raw, &meta) != nil || meta.Source == "" {
			return nil
		}
		return &catalog.TurnTrigger{
			Kind: bounded(meta.Source), Label: bounded(cmp.Or(meta.BackgroundTask.CommandLabel, meta.BackgroundTask.Label)),
		}
	}
}

// requestTrigger is workTrigger for requests.
func requestTrigger(method string, params []byte) func() *catalog.TurnTrigger {
	return func() *catalog.TurnTrigger {
		var p struct{ Source string }
		if method != qwenStartTurn || json.Unmarshal(params, &p) != nil || p.Source == "" {
			return nil
		}
		return &catalog.TurnTrigger{Kind: bounded(p.Source)}
	}
}
