package acp

import (
	"encoding/json"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/executor/task"
)

// A question of Kimi Code names the tool and its input, so that rules match them. In a prompted
// turn the arguments come before the question as text, in pieces. In an agent-initiated turn the
// question comes alone, with the first 50 characters of the command.
func TestKimiQuestionsNameToolAndInput(t *testing.T) {
	call := func(kind, text string) string {
		raw, err := json.Marshal(map[string]any{
			"sessionUpdate": kind, "toolCallId": "0:call_2", "title": "Bash", "kind": "execute", "status": "pending",
			"content": []any{map[string]any{"type": "content", "content": map[string]any{"type": "text", "text": text}}},
		})
		require.NoError(t, err)
		return string(raw)
	}
	const asked = `{"toolCallId":"0:call_2","title":"Bash","content":[{"type":"content","content":{"type":"text","text":"Requesting approval to Running: touch made"}}]}`
	for name, c := range map[string]struct {
		reported []string
		asked    string
		input    string
	}{
		"in pieces":           {[]string{call("tool_call", `{"comm`), call("tool_call_update", `{"command":"touch made"}`)}, asked, `{"command":"touch made"}`},
		"unfinished":          {[]string{call("tool_call", `{"command":"touch ma`)}, asked, ``},
		"a name stands twice": {[]string{call("tool_call", `{"command":"ls","command":"touch made"}`)}, asked, ``},
		"in its own turn":     {nil, asked, ``},
	} {
		t.Run(name, func(t *testing.T) {
			turn := newTurn(task.New(t.Context(), t.Context(), &reports{}, slog.New(slog.DiscardHandler), catalog.ExecutePromptParams{TaskID: "t", Launch: &catalog.AgentLaunch{}}), Options{})
			defer turn.Close()
			turn.isKimi.Store(true)
			for _, raw := range c.reported {
				var kind struct{ SessionUpdate string }
				require.NoError(t, json.Unmarshal([]byte(raw), &kind))
				turn.update(kind.SessionUpdate, []byte(raw), false)
			}
			open, err := turn.takePermission([]byte(`{"toolCall":` + c.asked + `,"options":[]}`))
			require.NoError(t, err)
			q := (&agent{}).question(turn, &open.request, turn.tools.state(open))
			assert.Equal(t, "Bash", q.ToolName)
			assert.False(t, q.NameByKind)
			assert.Equal(t, c.input, string(q.ToolInput))
			assert.Equal(t, "Requesting approval to Running: touch made", q.Details)
		})
	}
}
