package acp

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestUpdatesOfVersion2(t *testing.T) {
	for _, c := range []struct {
		updates []any
		want    string
	}{
		{
			[]any{MessageChunk{Kind: KindUserMessageChunk, MessageID: "m", Content: TextContent("x")}, MessageChunk{Kind: KindUserMessageChunk, MessageID: "m", Content: TextContent("y")}},
			`[{"sessionUpdate":"user_message","messageId":"m","content":[{"type":"text","text":"x"},{"type":"text","text":"y"}]}]`,
		},
		{
			[]any{ToolCall{Kind: KindToolCall, ToolCallID: "c", Name: "Write", Title: "T", Locations: []Location{{Path: "/a"}, {Path: "b"}}}},
			`[{"sessionUpdate":"tool_call_update","toolCallId":"c","name":"Write","title":"T","locations":[{"path":"/a"}]}]`,
		},
		{[]any{PlanUpdate{Kind: KindPlan, Entries: []PlanEntry{}}}, `[{"sessionUpdate":"plan_update","plan":{"type":"items","planId":"plan","entries":[]}}]`},
		{[]any{ModeUpdate{Kind: KindMode, Current: "plan"}}, `null`},
		{
			[]any{ConfigUpdate{Kind: KindConfig, ConfigOptions: []ConfigOption{{ID: "mode", Name: "Mode", Type: "select", CurrentValue: "plan", Options: []ConfigValue{{Value: "plan", Name: "Plan"}}}}}},
			`[{"sessionUpdate":"config_option_update","configOptions":[{"configId":"mode","name":"Mode","type":"select","currentValue":"plan","options":[{"value":"plan","name":"Plan"}]}]}]`,
		},
		{
			[]any{CommandsUpdate{Kind: KindCommands, Commands: []Command{{Name: "n", Description: "d", Input: &CommandInput{Hint: "h"}}}}},
			`[{"sessionUpdate":"available_commands_update","availableCommands":[{"type":"command","name":"n","description":"d","input":{"type":"text","hint":"h"}}]}]`,
		},
	} {
		got, err := json.Marshal(updates2(c.updates))
		require.NoError(t, err)
		assert.JSONEq(t, c.want, string(got))
	}
	replayed, err := json.Marshal(updates2(Replayed([]any{MessageChunk{Kind: KindAgentThoughtChunk, MessageID: "m", Content: TextContent("x")}})))
	require.NoError(t, err)
	assert.JSONEq(t, `[{"sessionUpdate":"agent_thought","messageId":"m","content":[]},{"sessionUpdate":"agent_thought_chunk","messageId":"m","content":{"type":"text","text":"x"}}]`, string(replayed))
	chunk := updates2([]any{MessageChunk{Kind: KindAgentMessageChunk, Content: TextContent("x")}})[0].(MessageChunk)
	assert.NotEmpty(t, chunk.MessageID, "each message has an id")
}

func TestDiffsOfVersion2(t *testing.T) {
	before, after := "old\n", "new\n"
	for _, c := range []struct {
		content ToolContent
		want    string
	}{
		{ToolContent{Path: "/a/b", NewText: &after}, `{"type":"diff","changes":[{"operation":"add","path":"/a/b"}],"patch":{"format":"git_patch","text":"diff --git /a/b /a/b\nnew file mode 100644\n--- /dev/null\n+++ /a/b\n@@ -0,0 +1 @@\n+new\n"}}`},
		{ToolContent{Path: "/a b", OldText: &before, NewText: &after}, `{"type":"diff","changes":[{"operation":"modify","path":"/a b"}],"patch":{"format":"git_patch","text":"diff --git /a b /a b\n--- /a b\t\n+++ /a b\t\n@@ -1 +1 @@\n-old\n+new\n"}}`},
		{ToolContent{Path: "/a\n\"é\x01", OldText: &before, NewText: &after}, `{"type":"diff","changes":[{"operation":"modify","path":"/a\n\"é\u0001"}],"patch":{"format":"git_patch","text":"diff --git \"/a\\n\\\"é\\001\" \"/a\\n\\\"é\\001\"\n--- \"/a\\n\\\"é\\001\"\n+++ \"/a\\n\\\"é\\001\"\n@@ -1 +1 @@\n-old\n+new\n"}}`},
		{ToolContent{Path: "/a", OldText: &after, NewText: &after}, `{"type":"diff","changes":[{"operation":"modify","path":"/a"}]}`},
		{ToolContent{Path: "/a", NewText: new("")}, `{"type":"diff","changes":[{"operation":"add","path":"/a"}],"patch":{"format":"git_patch","text":"diff --git /a /a\nnew file mode 100644\n"}}`},
		{ToolContent{Path: "a", NewText: &after}, `{"type":"content","content":{"type":"text","text":"` + "```diff\\n--- /dev/null\\n+++ b/a\\n@@ -0,0 +1 @@\\n+new\\n```\\n" + `"}}`},
	} {
		got, err := json.Marshal(diff2(c.content))
		require.NoError(t, err)
		assert.JSONEq(t, c.want, string(got))
	}
}

// In version 2 a way to sign in has a type, and its id has another name.
func TestAuthMethodsOfVersion2(t *testing.T) {
	got, err := json.Marshal(authMethods2([]AuthMethod{{ID: "a", Name: "A"}, {ID: "t", Name: "T", Type: "terminal", Args: []string{"--login"}}}))
	require.NoError(t, err)
	assert.JSONEq(t, `[{"methodId":"a","name":"A","type":"agent"},{"methodId":"t","name":"T","type":"terminal","args":["--login"]}]`, string(got))
}
