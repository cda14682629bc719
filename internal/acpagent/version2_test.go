package acpagent

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/acp"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/protocol"
	"github.com/duet-rpc/duet-rpc/internal/wire"
)

func TestUpdates(t *testing.T) {
	for _, c := range []struct {
		updates []any
		want    string
	}{
		{
			[]any{acp.MessageChunk{Kind: acp.KindUserMessageChunk, MessageID: "m", Content: acp.TextContent("x")}, acp.MessageChunk{Kind: acp.KindUserMessageChunk, MessageID: "m", Content: acp.TextContent("y")}},
			`[{"sessionUpdate":"user_message","messageId":"m","content":[{"type":"text","text":"x"},{"type":"text","text":"y"}]}]`,
		},
		{
			[]any{acp.ToolCall{Kind: acp.KindToolCall, ToolCallID: "c", Name: "Write", Title: "T", Locations: []acp.Location{{Path: "/a"}, {Path: "b"}}}},
			`[{"sessionUpdate":"tool_call_update","toolCallId":"c","name":"Write","title":"T","locations":[{"path":"/a"}]}]`,
		},
		{[]any{acp.PlanUpdate{Kind: acp.KindPlan, Entries: []acp.PlanEntry{}}}, `[{"sessionUpdate":"plan_update","plan":{"type":"items","planId":"plan","entries":[]}}]`},
		{[]any{acp.ModeUpdate{Kind: acp.KindMode, Current: "plan"}}, `null`},
		{
			[]any{acp.ConfigUpdate{Kind: acp.KindConfig, ConfigOptions: []acp.ConfigOption{{ID: "mode", Name: "Mode", Type: "select", CurrentValue: "plan", Options: []acp.ConfigValue{{Value: "plan", Name: "Plan"}}}}}},
			`[{"sessionUpdate":"config_option_update","configOptions":[{"configId":"mode","name":"Mode","type":"select","currentValue":"plan","options":[{"value":"plan","name":"Plan"}]}]}]`,
		},
		{
			[]any{acp.CommandsUpdate{Kind: acp.KindCommands, Commands: []acp.Command{{Name: "n", Description: "d", Input: &acp.CommandInput{Hint: "h"}}}}},
			`[{"sessionUpdate":"available_commands_update","availableCommands":[{"type":"command","name":"n","description":"d","input":{"type":"text","hint":"h"}}]}]`,
		},
	} {
		got, err := json.Marshal(updates2(c.updates))
		require.NoError(t, err)
		assert.JSONEq(t, c.want, string(got))
	}
	replayed, err := json.Marshal(updates2(replayed2([]any{acp.MessageChunk{Kind: acp.KindAgentThoughtChunk, MessageID: "m", Content: acp.TextContent("x")}})))
	require.NoError(t, err)
	assert.JSONEq(t, `[{"sessionUpdate":"agent_thought","messageId":"m","content":[]},{"sessionUpdate":"agent_thought_chunk","messageId":"m","content":{"type":"text","text":"x"}}]`, string(replayed))
	chunk := updates2([]any{acp.MessageChunk{Kind: acp.KindAgentMessageChunk, Content: acp.TextContent("x")}})[0].(acp.MessageChunk)
	assert.NotEmpty(t, chunk.MessageID, "each message has an id")
}

func TestDiffs(t *testing.T) {
	before, after := "old\n", "new\n"
	for _, c := range []struct {
		content acp.ToolContent
		want    string
	}{
		{acp.ToolContent{Path: "/a/b", NewText: &after}, `{"type":"diff","changes":[{"operation":"add","path":"/a/b"}],"patch":{"format":"git_patch","text":"diff --git /a/b /a/b\nnew file mode 100644\n--- /dev/null\n+++ /a/b\n@@ -0,0 +1 @@\n+new\n"}}`},
		{acp.ToolContent{Path: "/a b", OldText: &before, NewText: &after}, `{"type":"diff","changes":[{"operation":"modify","path":"/a b"}],"patch":{"format":"git_patch","text":"diff --git /a b /a b\n--- /a b\t\n+++ /a b\t\n@@ -1 +1 @@\n-old\n+new\n"}}`},
		{acp.ToolContent{Path: "/a\n\"é\x01", OldText: &before, NewText: &after}, `{"type":"diff","changes":[{"operation":"modify","path":"/a\n\"é\u0001"}],"patch":{"format":"git_patch","text":"diff --git \"/a\\n\\\"é\\001\" \"/a\\n\\\"é\\001\"\n--- \"/a\\n\\\"é\\001\"\n+++ \"/a\\n\\\"é\\001\"\n@@ -1 +1 @@\n-old\n+new\n"}}`},
		{acp.ToolContent{Path: "/a", OldText: &after, NewText: &after}, `{"type":"diff","changes":[{"operation":"modify","path":"/a"}]}`},
		{acp.ToolContent{Path: "/a", NewText: new("")}, `{"type":"diff","changes":[{"operation":"add","path":"/a"}],"patch":{"format":"git_patch","text":"diff --git /a /a\nnew file mode 100644\n"}}`},
		{acp.ToolContent{Path: "a", NewText: &after}, `{"type":"content","content":{"type":"text","text":"` + "```diff\\n--- /dev/null\\n+++ b/a\\n@@ -0,0 +1 @@\\n+new\\n```\\n" + `"}}`},
	} {
		got, err := json.Marshal(diffOf(c.content))
		require.NoError(t, err)
		assert.JSONEq(t, c.want, string(got))
	}
}

func TestPermissions(t *testing.T) {
	asked := acp.PermissionRequest{SessionID: "s", ToolCall: acp.ToolCall{ToolCallID: "c", Name: "Bash"}, Options: []acp.PermissionOption{{OptionID: "y", Name: "Yes", Kind: "allow_once"}}}
	const options = `"options":[{"optionId":"y","name":"Yes","kind":"allow_once"}]`
	for _, c := range []struct {
		q    wire.Approval
		want string
	}{
		{wire.Approval{Approval: protocol.Approval{Type: domain.FunctionCall, ToolUseID: "c", Title: "T", Details: "Because", Reopened: "Again"}}, `{"sessionId":"s","title":"T","description":"Because\n\nAgain",` + options + `,"subject":{"type":"tool_call","toolCall":{"toolCallId":"c","name":"Bash"}}}`},
		{wire.Approval{Approval: protocol.Approval{Type: domain.HumanContact, Subject: "Paint"}}, `{"sessionId":"s","title":"Paint",` + options + `}`},
	} {
		got, err := json.Marshal(permission2(c.q, asked))
		require.NoError(t, err)
		assert.JSONEq(t, c.want, string(got))
	}
}

// A way to sign in has a type, and another name for its id.
func TestAuthMethods(t *testing.T) {
	got, err := json.Marshal(authMethods2([]acp.AuthMethod{{ID: "a", Name: "A"}, {ID: "t", Name: "T", Type: "terminal", Args: []string{"--login"}}}))
	require.NoError(t, err)
	assert.JSONEq(t, `[{"methodId":"a","name":"A","type":"agent"},{"methodId":"t","name":"T","type":"terminal","args":["--login"]}]`, string(got))
}
