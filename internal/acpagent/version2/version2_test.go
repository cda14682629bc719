package version2

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/acpagent/schema"
)

func TestUpdates(t *testing.T) {
	text := "new\n"
	tool := schema.ToolCall{Kind: schema.KindToolCall, ToolCallID: "c", Title: "T", Content: []schema.ToolContent{{Type: "diff", Path: "/a/b", NewText: &text}}}
	const diff = `{"type":"diff","changes":[{"operation":"add","path":"/a/b"}],"patch":{"format":"git_patch","text":"--- /dev/null\n+++ b/a/b\n@@ -0,0 +1 @@\n+new\n"}}`
	for _, c := range []struct {
		update any
		want   string
	}{
		{schema.Chunk{Kind: schema.AgentMessageChunk, Content: schema.Text("x")}, `{"sessionUpdate":"agent_message_chunk","messageId":"own","content":{"type":"text","text":"x"}}`},
		{schema.Chunk{Kind: schema.UserMessageChunk, MessageID: "m", Content: schema.Text("x")}, `{"sessionUpdate":"user_message_chunk","messageId":"m","content":{"type":"text","text":"x"}}`},
		{tool, `{"sessionUpdate":"tool_call_update","toolCallId":"c","title":"T","content":[` + diff + `]}`},
		{schema.Plan{Kind: schema.KindPlan, Entries: []schema.PlanEntry{}}, `{"sessionUpdate":"plan_update","plan":{"type":"items","planId":"plan","entries":[]}}`},
		{schema.ModeUpdate{Kind: schema.KindMode, Current: "plan"}, `null`},
		{
			schema.ConfigUpdate{Kind: schema.KindConfig, ConfigOptions: []schema.ConfigOption{{ID: "mode", Name: "Mode", Type: "select", CurrentValue: "plan", Options: []schema.ConfigValue{{Value: "plan", Name: "Plan"}}}}},
			`{"sessionUpdate":"config_option_update","configOptions":[{"configId":"mode","name":"Mode","type":"select","currentValue":"plan","options":[{"value":"plan","name":"Plan"}]}]}`,
		},
		{schema.Commands{Kind: schema.KindCommands, Commands: []schema.Command{{Name: "n", Description: "d", Input: &schema.CommandInput{Hint: "h"}}}}, `{"sessionUpdate":"available_commands_update","availableCommands":[{"name":"n","description":"d","input":{"type":"text","hint":"h"}}]}`},
		{json.RawMessage(`{"sessionUpdate":"tool_call"}`), `null`},
		{State(Idle, "end_turn"), `{"sessionUpdate":"state_update","state":"idle","stopReason":"end_turn"}`},
	} {
		got, err := json.Marshal(Update(c.update, "own"))
		require.NoError(t, err)
		assert.JSONEq(t, c.want, string(got))
	}
	got, err := json.Marshal(Permission(schema.PermissionRequest{SessionID: "s", ToolCall: tool, Options: []schema.PermissionOption{{OptionID: "y", Name: "Yes", Kind: "allow_once"}}}))
	require.NoError(t, err)
	assert.JSONEq(t, `{"sessionId":"s","title":"T","options":[{"optionId":"y","name":"Yes","kind":"allow_once"}],"subject":{"type":"tool_call","toolCall":{"sessionUpdate":"tool_call","toolCallId":"c","title":"T","content":[`+diff+`]}}}`, string(got))
}
