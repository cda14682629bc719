//go:build unix

package executor_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/executor"
)

// A plan is shown as its text, wherever the agent puts it. The requests are copied from real
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
		"deny-cancelled": 1, // codex-acp: nothing more comes, and stopReason is cancelled
		"deny-end":       1, // codex-acp: no more updates, and stopReason is cancelled
		"deny-says":      0, // opencode: the tool has failed, and stopReason is end_turn
		"deny-tries":     0, // and calls another tool
	} {
		t.Run(word, func(t *testing.T) {
			h := newHub()
			h.decide = func(context.Context, catalog.RequestPermissionParams) (catalog.RequestPermissionResult, error) {
				return catalog.RequestPermissionResult{Reason: "user_denied", Comment: "no"}, nil
			}
			execute(t, newExecutor(t, h, executor.Options{}), prompt(t, "plain", word))
			assert.Len(t, h.data(catalog.EventDenialEndedTurn), want)
		})
	}
}
