package acp

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/acp"
	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/executor/task"
)

// busyHub encodes its reports, like a link.
type busyHub struct {
	task.Hub
	reports int
}

func (h *busyHub) ReportMessage(_ context.Context, p catalog.ReportMessageParams) error {
	h.reports++
	_, err := task.JSON(p)
	return err
}

// BenchmarkUpdates runs an agent that streams text, and one that calls tools: the target is
// 30,000 updates a second on one core.
func BenchmarkUpdates(b *testing.B) {
	for _, u := range []struct {
		name, kind string
		update     map[string]any
	}{
		{"text", "agent_message_chunk", map[string]any{
			"sessionUpdate": "agent_message_chunk", "content": map[string]any{"type": "text", "text": strings.Repeat("word ", 12)},
		}},
		{"tool", "tool_call", map[string]any{
			"sessionUpdate": "tool_call", "toolCallId": "call_1", "title": "ls -l internal/executor", "kind": "execute", "status": "pending",
			"rawInput": map[string]any{"command": "ls -l internal/executor", "description": "List files"},
			"content":  []any{map[string]any{"type": "content", "content": map[string]any{"type": "text", "text": "List files"}}},
			"_meta":    map[string]any{"claudeCode": map[string]any{"toolName": "Bash"}},
		}},
	} {
		b.Run(u.name, func(b *testing.B) { benchmarkUpdates(b, u.kind, u.update) })
	}
}

func benchmarkUpdates(b *testing.B, kind string, content map[string]any) {
	hub := &busyHub{}
	t := newTurn(task.New(b.Context(), b.Context(), hub, slog.New(slog.DiscardHandler), catalog.ExecutePromptParams{TaskID: "t", SessionToken: "token", Launch: &catalog.AgentLaunch{}}), Options{})
	defer t.Close()
	update, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "method": "session/update", "params": map[string]any{
		"sessionId": "0123456789", "update": content,
	}})
	require.NoError(b, err)
	const lines = 1000
	input := bytes.Repeat(append(update, '\n'), lines)
	b.ReportAllocs()
	b.ResetTimer()
	n := 0
	for b.Loop() {
		acp.NewConn(io.Discard, acp.Handler{Update: func(_, u []byte, _ bool) { t.update(kind, u, false) }}).Read(bytes.NewReader(input))
		n += lines
	}
	b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "updates/s")
	require.Equal(b, n, hub.reports)
}
