//go:build unix

package executor_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/executor"
	"github.com/duet-rpc/duet-rpc/internal/executor/task"
)

func TestPromptContentFollowsCapabilities(t *testing.T) {
	text := "hello"
	image := catalog.ContentBlock{Type: "image", MIMEType: "image/png", Data: "AAEC", URI: "file:///a.png"}
	audio := catalog.ContentBlock{Type: "audio", MIMEType: "audio/wav", Data: "AAEC"}
	file := catalog.ContentBlock{Type: "resource", Name: "a.txt", Resource: &catalog.Resource{URI: "file:///a.txt", MIMEType: "text/plain", Text: &text}}
	link := catalog.ContentBlock{Type: "resource_link", URI: "https://example.org/x", Name: "x"}
	for _, c := range []struct {
		kind    string
		content []catalog.ContentBlock
		want    string // what the agent got
		refused string // or why it got nothing
	}{
		{"sighted", []catalog.ContentBlock{image, audio, file, link}, `{"type":"image","mimeType":"image/png","data":"AAEC","uri":"file:///a.png"}
{"type":"audio","mimeType":"audio/wav","data":"AAEC"}
{"type":"resource","resource":{"uri":"file:///a.txt","mimeType":"text/plain","text":"hello"}}
{"type":"resource_link","uri":"https://example.org/x","name":"x"}
`, ""},
		{"plain", []catalog.ContentBlock{file, link}, `{"type":"resource_link","mimeType":"text/plain","uri":"file:///a.txt","name":"a.txt"}
{"type":"resource_link","uri":"https://example.org/x","name":"x"}
`, ""},
		{"plain", []catalog.ContentBlock{image}, "", "fake takes no content of the type image in prompts: it takes text and links to resources"},
		{"plain", []catalog.ContentBlock{audio}, "", "fake takes no content of the type audio in prompts: it takes text and links to resources"},
		{"sighted", []catalog.ContentBlock{{Type: "video"}}, "", "fake takes no content of the type video in prompts: it takes text, images, audio, resources and links to resources"},
	} {
		h := newHub()
		p := prompt(t, c.kind, "blocks")
		p.Content = c.content
		result := execute(t, newExecutor(t, h, executor.Options{}), p)
		if c.refused != "" {
			assert.Equal(t, &catalog.ExecutionError{Code: task.CodeContent, Message: c.refused}, result.Error)
			assert.Equal(t, &domain.PromptTakes{Image: c.kind == "sighted", Audio: c.kind == "sighted", Resource: c.kind == "sighted"}, settingsReports(t, h)[0].Takes, "the executor reports the supported content")
			continue
		}
		assert.Equal(t, catalog.StatusCompleted, result.Status, "%+v", result.Error)
		assert.Equal(t, c.want, h.text())
	}
}

func TestContentOtherThanTextIsReported(t *testing.T) {
	chunk := func(content string) string {
		return updating(`{"sessionUpdate":"agent_message_chunk","messageId":"m","content":` + content + `}`)
	}
	h := asksFor(t,
		chunk(`{"type":"text","text":"Look: "}`),
		chunk(`{"type":"image","mimeType":"image/png","data":"AAEC"}`),
		chunk(`{"type":"resource","resource":{"uri":"file:///a","text":"hello"}}`),
		chunk(`{"type":"resource_link","uri":"file:///a","name":"a"}`),
		chunk(`{"type":"hologram","data":"x"}`),
		chunk(`{"type":"image","data":7}`),
		updating(`{"sessionUpdate":"tool_call","toolCallId":"1","kind":"read","title":"Read"}`),
		updating(`{"sessionUpdate":"tool_call_update","toolCallId":"1","status":"completed","rawOutput":{"base64":"AAEC"},"content":[{"type":"content","content":{"type":"image","mimeType":"image/png","data":"AAEC"}},{"type":"content","content":{"type":"hologram"}}]}`),
		updating(`{"sessionUpdate":"tool_call","toolCallId":"2","kind":"execute","title":"make","_meta":{"claudeCode":{"parentToolUseId":"1"}}}`),
		updating(`{"sessionUpdate":"agent_thought_chunk","content":{"type":"text","text":"hm"},"_meta":{"claudeCode":{"parentToolUseId":"1"}}}`),
		updating(`{"sessionUpdate":"agent_message_chunk","messageId":"s","content":{"type":"text","text":"ok"},"_meta":{"claudeCode":{"parentToolUseId":"1"}}}`),
		updating(`{"sessionUpdate":"agent_message_chunk","messageId":"s","content":{"type":"image","mimeType":"image/png","data":"AQID"},"_meta":{"claudeCode":{"parentToolUseId":"1"}}}`),
		updating(`{"sessionUpdate":"tool_call_update","toolCallId":"2","status":"completed","content":[{"type":"content","content":{"type":"text","text":"\u001b[32mPASS\u001b[0m"}}]}`),
	)
	assert.Equal(t, []string{
		`{"content":{"type":"image","mimeType":"image/png","data":"AAEC"}}`,
		`{"content":{"type":"resource","resource":{"uri":"file:///a","text":"hello"}}}`,
		`{"content":{"type":"resource_link","uri":"file:///a","name":"a"}}`,
		`{"content":{"type":"image","mimeType":"image/png","data":"AQID"},"parent_id":"1"}`,
	}, h.data("content"))
	assert.Len(t, h.data("raw"), 3, "unknown content is passed on unchanged")
	results := h.data("tool_result")
	require.Len(t, results, 2)
	assert.JSONEq(t, `{"tool_id":"1","tool":"Read","status":"completed","content":[{"type":"image","mimeType":"image/png","data":"AAEC"}]}`, results[0])
	assert.Contains(t, h.data("tool_call")[1], `"parent_id":"1"`)
	assert.Contains(t, strings.Join(h.data(catalog.EventContentDelta), "\n"), `{"message_id":"s","delta":{"text":"ok"},"parent_id":"1","_meta":{"claudeCode":{"parentToolUseId":"1"}}}`)
	assert.Equal(t, []string{`{"delta":{"text":"hm"},"parent_id":"1","_meta":{"claudeCode":{"parentToolUseId":"1"}}}`}, h.data(catalog.EventThinkingChunk))
	assert.Contains(t, results[1], `\u001b[32mPASS`, "control sequences stay, and views escape them")
}

func TestOpencodeTodosAreAPlan(t *testing.T) {
	h := asksFor(t,
		updating(`{"sessionUpdate":"tool_call","toolCallId":"1","kind":"other","title":"todowrite","rawInput":{}}`),
		updating(`{"sessionUpdate":"tool_call_update","toolCallId":"1","status":"in_progress","title":"todowrite","rawInput":{"todos":[{"content":"Look","status":"in_progress","priority":"high","id":"1"}]}}`),
		updating(`{"sessionUpdate":"tool_call_update","toolCallId":"1","status":"completed","title":"0 todos","rawInput":{"todos":[{"content":"Look","status":"completed","priority":"high"}]}}`),
		updating(`{"sessionUpdate":"tool_call","toolCallId":"2","kind":"other","title":"todowrite","rawInput":{"todos":"none"}}`),
		updating(`{"sessionUpdate":"tool_call","toolCallId":"3","kind":"other","title":"other","rawInput":{"todos":[{"content":"x"}]}}`),
	)
	assert.Equal(t, []string{
		`{"entries":[{"content":"Look","priority":"high","status":"in_progress"}]}`,
		`{"entries":[{"content":"Look","priority":"high","status":"completed"}]}`,
	}, h.data("plan"))
}

// A question has the text of a plan, wherever the agent puts it. The requests are copied from real
// agents.
func TestPlanIsShownAsText(t *testing.T) {
	file := filepath.Join(t.TempDir(), "plan.md")
	require.NoError(t, os.WriteFile(file, []byte("1. from the file"), 0o600))
	const content = `"content":[{"type":"content","content":{"type":"text","text":"1. shown"}}]`
	for name, c := range map[string]struct {
		before, asks, want string
	}{
		"in the input (claude-agent-acp 0.49)": {asks: `{"toolCallId":"1","kind":"switch_mode","title":"Ready to code?","rawInput":{"plan":"1. x","planFilePath":"/x.md"},` + content + `}`, want: "1. x"},
		"said before, and the request is empty (0.100)": {
			`{"sessionUpdate":"tool_call_update","toolCallId":"1","kind":"switch_mode","title":"Approve Plan","rawInput":{"plan":"1. before"},` + content + `}`,
			`{"toolCallId":"1","kind":"switch_mode","title":"Approve Plan","rawInput":{ },"content":[]}`, "1. before",
		},
		"shown before": {
			`{"sessionUpdate":"tool_call","toolCallId":"1","kind":"switch_mode","title":"x","rawInput":{},` + content + `}`,
			`{"toolCallId":"1","kind":"switch_mode","title":"x","content":[]}`, "1. shown",
		},
		"by the tool's name":           {asks: `{"toolCallId":"1","kind":"other","title":"x","rawInput":{"plan":"1. y"},"_meta":{"claudeCode":{"toolName":"ExitPlanMode"}}}`, want: "1. y"},
		"in a file (gemini-cli)":       {asks: `{"toolCallId":"1","kind":"other","title":"Requesting plan approval for: ` + file + `","content":[]}`, want: "1. from the file"},
		"in a file that is not there":  {asks: `{"toolCallId":"1","kind":"other","title":"Requesting plan approval for: /nowhere/plan.md","content":[]}`, want: "Requesting plan approval for: /nowhere/plan.md"},
		"in what is no file of a plan": {asks: `{"toolCallId":"1","kind":"other","title":"Requesting plan approval for: /etc/hosts","content":[]}`, want: "Requesting plan approval for: /etc/hosts"},
		"of a type that is no text":    {asks: `{"toolCallId":"1","kind":"switch_mode","title":"x","rawInput":{"plan":7}}`, want: "x"},
		"of another tool":              {asks: `{"toolCallId":"1","kind":"execute","title":"x","rawInput":{"plan":"y"},` + content + `}`},
	} {
		t.Run(name, func(t *testing.T) {
			lines := []string{asking(c.asks)}
			if c.before != "" {
				lines = []string{updating(c.before), asking(c.asks)}
			}
			h := asksFor(t, lines...)
			require.Len(t, h.asked, 1)
			assert.Equal(t, c.want, h.asked[0].Plan)
		})
	}
}

// An empty input in a request does not replace the earlier input.
func TestEmptyInputKeepsEarlierInput(t *testing.T) {
	h := asksFor(t,
		updating(`{"sessionUpdate":"tool_call","toolCallId":"1","kind":"execute","title":"x","rawInput":{"command":"rm x"}}`),
		asking(`{"toolCallId":"1","rawInput":{}}`))
	require.Len(t, h.asked, 1)
	assert.JSONEq(t, `{"command":"rm x"}`, string(h.asked[0].ToolInput))
}

// A turn that ends after a denial reports that the agent did not do the task.
func TestTurnEndedByDenial(t *testing.T) {
	for word, want := range map[string]int{
		"deny-cancelled": 1, // codex-acp: no more updates, and stopReason is cancelled
		"deny-end":       1, // only the failed tool call follows, and stopReason is end_turn
		"deny-says":      0, // opencode: text follows the failed tool call, and stopReason is end_turn
		"deny-tries":     0, // another tool call follows
	} {
		t.Run(word, func(t *testing.T) {
			h := newHub()
			h.answers(catalog.RequestPermissionResult{Reason: "user_denied", Comment: "no"}, nil)
			execute(t, newExecutor(t, h, executor.Options{}), prompt(t, "plain", word))
			assert.Len(t, h.data(catalog.EventDenialEndedTurn), want)
		})
	}
}
